"""Sending over TLS: at most one encrypted piece waits for the carrier.

The piece counts as unsent until the carrier has taken all of it: until then `send` returns 0, and
`pay` returns its size afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.net.tls.tls_engine import TlsEngine

_NOTHING: Final = memoryview(b"")


class TlsSending:
    """The sending half of one connection."""

    __slots__ = ("_carrier", "_engine", "_unsent", "_waiting_bytes")

    # _waiting_bytes > 0 => _unsent encrypts this many bytes that were not reported as sent.

    def __init__(self, engine: TlsEngine, carrier: ConnectionTransport) -> None:
        self._engine = engine
        self._carrier = carrier
        self._unsent = _NOTHING
        self._waiting_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Memory of unsent bytes."""
        return len(cast("bytes", self._unsent.obj))  # a view of the rest holds all of it

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait."""
        return len(self._unsent) > 0

    @property
    def has_waiting_piece(self) -> bool:
        """Whether the sender must learn the size of a piece."""
        return self._waiting_bytes > 0

    def pay(self) -> int:
        """Return the size of the waiting piece if it has been sent, otherwise 0.

        Raises:
            OSError: From the carrier.
        """
        if not self.flush():
            return 0
        sent_bytes, self._waiting_bytes = self._waiting_bytes, 0
        return sent_bytes

    def send(self, piece: memoryview) -> int:
        """Encrypt a piece; return its size if it was sent completely, otherwise 0.

        Raises:
            OSError: From the carrier, or TlsFailedError.
        """
        if not self.flush():
            return 0
        self._unsent = memoryview(self._engine.encrypt(piece))
        if self.flush():
            return len(piece)
        self._waiting_bytes = len(piece)
        return 0

    def flush(self) -> bool:
        """Send encrypted bytes; return whether the carrier has taken all.

        Raises:
            OSError: From the carrier.
        """
        engine, carrier = self._engine, self._carrier
        while True:
            unsent = self._unsent
            if not unsent:
                if not engine.outgoing_bytes:
                    return True
                unsent = memoryview(engine.said())
            try:
                sent = carrier.send_piece(unsent, has_more=False)
            except (BlockingIOError, InterruptedError):
                self._unsent = unsent
                return False
            # An empty view would hold the sent bytes.
            self._unsent = unsent[sent:] if sent < len(unsent) else _NOTHING
