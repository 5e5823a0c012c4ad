"""Services that are started and stopped with a broker: the console, the delivery service.

Each is a separate process and a client of the broker, which continues if one of them ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wirebroker.net.listeners.ready_lines import is_everywhere, shown_address

if TYPE_CHECKING:
    from collections.abc import Sequence


class Companion(Protocol):
    """Something that runs while the broker is ready."""

    async def start(self, address: str) -> None:
        """Start; `address` is the broker's first listener."""
        ...

    async def stop(self) -> None:
        """End, before the broker does."""
        ...


async def start_companions(companions: Sequence[Companion], host: str, port: int) -> None:
    """Start them for a broker with this first listener."""
    for companion in companions:
        await companion.start(local_address(host, port))


async def stop_companions(companions: Sequence[Companion]) -> None:
    """Stop them."""
    for companion in companions:
        await companion.stop()


def local_address(host: str, port: int) -> str:
    """Return the address of a listener for a process on this machine."""
    if is_everywhere(host):
        host = "::1" if ":" in host else "127.0.0.1"
    return shown_address(host, port)
