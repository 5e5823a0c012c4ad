"""TCP and TLS transports of outgoing connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from wirebroker.base.asyncio_without_ssl import give_ssl
from wirebroker.net.client.polled_transport import PolledTransport, connect

if TYPE_CHECKING:
    import ssl

    from wirebroker.codecs.primitives import Buffer
    from wirebroker.net.client.transport import Receiver, Transport


class TcpDialer:
    """TCP on the loop's poller if it has one; otherwise, and for TLS, on asyncio's transports."""

    __slots__ = ("_context",)

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        """Dial by TLS if a context is given."""
        self._context = context

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        """Connect to a peer, trying its addresses in order.

        Raises:
            OSError: As in Dialer.dial, or the TLS handshake failed.
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
            message = getattr(error, "verify_message", "") or str(error.reason or error).lower()
            raise ConnectionError(
                f"the TLS handshake failed: {message.replace('_', ' ')}"
            ) from error
        except ConnectionError as error:
            reason = str(error) or "it ended the TLS handshake by closing the connection"
            raise ConnectionError(reason) from error
        return protocol


class _TcpTransport(asyncio.BufferedProtocol):
    """Adapter from asyncio's protocol to Transport."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None
        self.local_host = ""

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        name: Any = transport.get_extra_info("sockname")
        self.local_host = str(name[0])

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._receiver.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._receiver.buffer_updated(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self._receiver.lost(exc)

    # --- called by the connection ---

    def write(self, data: Buffer) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.abort()
