"""Interfaces of outgoing connections: TCP and TLS (tcp_dialer.py), memory in tests.

`dial` returns after TLS's handshake. For SASL see Handshake (connection.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer


class Receiver(Protocol):
    """Receiver of bytes; called on the loop, perhaps before `dial` has returned."""

    def get_buffer(self) -> memoryview:
        """Return memory to receive into; never empty."""
        ...

    def buffer_updated(self, count: int) -> None:
        """Process `count` bytes received into `get_buffer()`."""
        ...

    def lost(self, error: Exception | None) -> None:
        """Handle the transport's end, by either side or an error. Called once."""
        ...


class Transport(Protocol):
    """A connection to one peer."""

    local_host: str  # this node's address

    def write(self, data: Buffer) -> None:
        """Send bytes as soon as the peer accepts them; ignored after the end."""
        ...

    def close(self) -> None:
        """Close now and drop unsent bytes; ignored after the end."""
        ...


class Dialer(Protocol):
    """Factory of transports."""

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        """Connect to a peer; canceling leaves nothing open.

        Raises:
            OSError: It refuses, is unreachable, or its name is unknown (socket.gaierror).
        """
        ...
