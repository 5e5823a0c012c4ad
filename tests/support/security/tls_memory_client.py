"""The client's side of TLS over a memory transport."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, TypeVar

from wirebroker.base.clock import next_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.net.memory_transport import MemoryPeer

_Result = TypeVar("_Result")


class TlsMemoryClient:
    """One connection.

    Args:
        peer: The transport.
        context: The client's certificates and versions.
        step: Bytes per write; 0 writes all.

    Attributes:
        received: All received bytes.
    """

    def __init__(self, peer: MemoryPeer, context: ssl.SSLContext, *, step: int = 0) -> None:
        self.peer = peer
        self.step = step
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.engine = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.received = b""

    def begin(self) -> bool:
        self.engine.do_handshake()
        return True

    async def until_done(self, action: Callable[[], _Result]) -> _Result:
        """Try an operation that may need more data from the server."""
        while True:
            try:
                result = action()
            except ssl.SSLWantReadError:
                self._send()
                await next_turn()
                self.take()
            else:
                self._send()
                return result

    def take(self) -> None:
        data = self.peer.transport.take()
        self.received += data
        self.incoming.write(data)

    def _send(self) -> None:
        data = self.outgoing.read()
        step = self.step or len(data) or 1
        for start in range(0, len(data), step):
            self.peer.send(data[start : start + step])
