"""What TLS has still to hand to its carrier: at most a piece that is encrypted.

A piece counts as unsent until the carrier has taken all of it: whoever sends it is told that
nothing was taken, and when asking again how much the piece was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.net.tls.tls_engine import TlsEngine

_NOTHING: Final = memoryview(b"")


class TlsSending:
    """The sending half of one connection."""

    __slots__ = ("_carrier", "_engine", "_owed", "_unsent")

    # _owed > 0 => bytes of the carrier are unsent that encrypt so many, which nobody was told of.

    def __init__(self, engine: TlsEngine, carrier: ConnectionTransport) -> None:
        self._engine = engine
        self._carrier = carrier
        self._unsent = _NOTHING
        self._owed = 0

    @property
    def held_bytes(self) -> int:
        """The memory of what the carrier has not taken."""
        return len(cast("bytes", self._unsent.obj))  # a view of what is left keeps all of it

    @property
    def has_unsent(self) -> bool:
        """Whether the carrier has still to take something."""
        return len(self._unsent) > 0

    @property
    def is_owing(self) -> bool:
        """Whether a piece is on its way that nobody was told of."""
        return self._owed > 0

    def pay(self) -> int:
        """Tell how much the piece was that was on its way, if it has left; 0 if it has not.

        Raises:
            OSError: Of the carrier.
        """
        if not self.flush():
            return 0
        owed, self._owed = self._owed, 0
        return owed

    def send(self, piece: memoryview) -> int:
        """Encrypt a piece; return how much of it has left: all of it, or 0.

        Raises:
            OSError: Of the carrier, or TlsFailedError.
        """
        if not self.flush():
            return 0
        self._unsent = memoryview(self._engine.encrypt(piece))
        if self.flush():
            return len(piece)
        self._owed = len(piece)
        return 0

    def flush(self) -> bool:
        """Hand what is encrypted to the carrier; returns whether it has taken everything.

        Raises:
            OSError: Of the carrier.
        """
        engine, carrier = self._engine, self._carrier
        while True:
            unsent = self._unsent
            if not unsent:
                if not engine.said_bytes:
                    return True
                unsent = memoryview(engine.said())
            try:
                sent = carrier.send_piece(unsent, has_more=False)
            except (BlockingIOError, InterruptedError):
                self._unsent = unsent
                return False
            # What is sent is let go of: an empty view would keep it.
            self._unsent = unsent[sent:] if sent < len(unsent) else _NOTHING
