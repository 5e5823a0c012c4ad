"""What a connection stands on: bytes out, bytes in, an end. TCP and TLS here; memory elsewhere.

    dialer.dial(host, port, receiver) -> transport
        transport.write(...)                            receiver.get_buffer(), buffer_updated(n)
        transport.close()                               receiver.lost(error), exactly once

With TLS `dial` returns when its handshake is done. A simulation's dialer has no sockets at all.
Above it stands the Handshake (connection.py), which speaks Kafka: SASL belongs there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, cast

from wirebroker.base.lean_asyncio import give_ssl
from wirebroker.net.client.polled_transport import PolledTransport, connect

if TYPE_CHECKING:
    import ssl

    from wirebroker.codecs.primitives import Buffer


class Receiver(Protocol):
    """Who is told what arrives; called on the loop, perhaps before `dial` has returned."""

    def get_buffer(self) -> memoryview:
        """Return memory to receive into; never empty."""
        ...

    def buffer_updated(self, count: int) -> None:
        """Take the `count` bytes that were received into `get_buffer()`'s memory."""
        ...

    def lost(self, error: Exception | None) -> None:
        """Learn that the transport has ended: by the peer, by us, or by a fault. Called once."""
        ...


class Transport(Protocol):
    """A way to one peer.

    Attributes:
        local_host: Our side's address, by which that peer may reach this machine.
    """

    local_host: str

    def write(self, data: Buffer) -> None:
        """Send bytes, now or as soon as the peer takes them; without effect after the end."""
        ...

    def close(self) -> None:
        """End now: what is unsent is dropped. Without effect after the end."""
        ...


class Dialer(Protocol):
    """How transports are made."""

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        """Connect to a peer. Who is cancelled meanwhile leaves nothing open.

        Raises:
            OSError: It refuses, cannot be reached, or has no such name (socket.gaierror).
        """
        ...


class TcpDialer:
    """TCP on the loop's poller if it has one; else, as TLS always, on asyncio's transports."""

    __slots__ = ("_context",)

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        """Dial in plain text, or by TLS as a context says."""
        self._context = context

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        """Connect to a peer, trying its addresses one after the other.

        Raises:
            OSError: As of any dialer; or TLS did not come about.
        """
        loop = asyncio.get_running_loop()
        poller = getattr(loop, "poller", None)
        if self._context is None and poller is not None:
            return PolledTransport(poller, await connect(host, port), receiver)
        if self._context is None:
            _, protocol = await loop.create_connection(lambda: _TcpTransport(receiver), host, port)
            return protocol
        import ssl  # noqa: PLC0415 - it is there, where there is a context

        give_ssl()
        try:
            _, protocol = await loop.create_connection(
                lambda: _TcpTransport(receiver),
                host,
                port,
                ssl=self._context,
                server_hostname=host,
            )
        except ssl.SSLError as error:
            said = getattr(error, "verify_message", "") or str(error.reason or error).lower()
            raise ConnectionError(f"there is no TLS with it: {said.replace('_', ' ')}") from error
        except ConnectionError as error:
            what = str(error) or "it closes the connection when TLS is spoken to it"
            raise ConnectionError(what) from error
        return protocol


class _TcpTransport(asyncio.BufferedProtocol):
    """Asyncio's protocol on one side, our transport on the other."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None
        self.local_host = ""

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        name: Any = transport.get_extra_info("sockname")
        self.local_host = str(name[0])

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint  # as much as there is room for
        return self._receiver.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._receiver.buffer_updated(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self._receiver.lost(exc)

    # --- what the connection calls ---

    def write(self, data: Buffer) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.abort()
