"""Services that are started and stopped with a broker: the console, the delivery service.

Each is a separate process and a client of the broker, which continues if one of them ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from wirebroker.net.listeners.ready_lines import is_everywhere, shown_address

if TYPE_CHECKING:
    from collections.abc import Sequence


class ServedAddresses(NamedTuple):
    """The addresses of a broker for processes on this machine, each `host:port`.

    Attributes:
        kafka: Its first listener.
        http: Its first HTTP listener, if it has one.
    """

    kafka: str
    http: str | None = None


class Companion(Protocol):
    """Something that runs while the broker is ready."""

    async def start(self, addresses: ServedAddresses) -> None:
        """Start, for a broker with these addresses."""
        ...

    async def stop(self) -> None:
        """End, before the broker does."""
        ...


async def start_companions(
    companions: Sequence[Companion], host: str, port: int, http: tuple[str, int] | None = None
) -> None:
    """Start them for a broker with this first listener, and this HTTP listener, if it has one."""
    http_address = None if http is None else local_address(*http)
    addresses = ServedAddresses(local_address(host, port), http_address)
    for companion in companions:
        await companion.start(addresses)


async def stop_companions(companions: Sequence[Companion]) -> None:
    """Stop them."""
    for companion in companions:
        await companion.stop()


def local_address(host: str, port: int) -> str:
    """Return the address of a listener for a process on this machine."""
    if is_everywhere(host):
        host = "::1" if ":" in host else "127.0.0.1"
    return shown_address(host, port)
