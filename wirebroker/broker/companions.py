"""Services that are started and stopped with a broker: the console, the delivery service.

Each is a separate process and a client of the broker, which continues if one of them ends.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wirebroker.net.listeners.ready_lines import is_everywhere, shown_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class LocalBroker(NamedTuple):
    """The addresses of the broker, or of its workers, for a process on this machine.

    Attributes:
        address: The first listener.
        http_urls: The first HTTP listeners, without a path, by broker id.
        http_token: The token that these listeners require, or None.
    """

    address: str
    http_urls: Mapping[int, str] = MappingProxyType({})
    http_token: str | None = None


class Companion(Protocol):
    """Something that runs while the broker is ready."""

    async def start(self, broker: LocalBroker) -> None:
        """Start it for a broker."""
        ...

    async def stop(self) -> None:
        """End, before the broker does."""
        ...


async def start_companions(companions: Sequence[Companion], broker: LocalBroker) -> None:
    """Start them for a broker."""
    for companion in companions:
        await companion.start(broker)


async def stop_companions(companions: Sequence[Companion]) -> None:
    """Stop them."""
    for companion in companions:
        await companion.stop()


def local_address(host: str, port: int) -> str:
    """Return the address of a listener for a process on this machine."""
    if is_everywhere(host):
        host = "::1" if ":" in host else "127.0.0.1"
    return shown_address(host, port)


def local_http_url(addresses: Iterable[tuple[str, int]]) -> str | None:
    """Return the first of a broker's HTTP addresses as a URL without a path; None without one."""
    for host, port in addresses:
        return f"http://{local_address(host, port)}"
    return None
