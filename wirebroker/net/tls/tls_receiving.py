"""What TLS has of its carrier, and its connection has not taken: decrypted when it is asked for.

At most a piece waits to be decrypted, of which a call decrypts so many records, not only so many
bytes; a record that a look for the peer's end has found is kept as plain bytes.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from wirebroker.net.tls.tls_engine import RECORD_BYTES
from wirebroker.net.tls.tls_error import TlsFailedError
from wirebroker.net.tls.tls_turns import PIECE_BYTES

if TYPE_CHECKING:
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.net.tls.tls_engine import TlsEngine
    from wirebroker.net.tls.tls_sending import TlsSending

# One call of `receive` takes at most so many pieces from the carrier.
_MOST_PIECES: Final = 4


class TlsReceiving:
    """The receiving half of one connection."""

    __slots__ = ("_ahead", "_area", "_carrier", "_engine", "_sending")

    def __init__(
        self,
        engine: TlsEngine,
        carrier: ConnectionTransport,
        sending: TlsSending,
        area: memoryview,
    ) -> None:
        """Begin.

        Args:
            engine: Decrypts.
            carrier: Has the records.
            sending: Takes what the engine itself says to the peer.
            area: PIECE_BYTES that records go through within one call, shared by all.
        """
        self._engine = engine
        self._carrier = carrier
        self._sending = sending
        self._area = area
        # Plain bytes that a look for the end has found.
        self._ahead = b""

    @property
    def held_bytes(self) -> int:
        """The memory of what was found ahead."""
        return len(self._ahead)

    @property
    def is_readable(self) -> bool:
        """Whether there is something that the carrier won't tell of."""
        engine = self._engine
        return bool(self._ahead) or engine.is_at_end or not engine.is_drained

    def take(self, most_bytes: int) -> memoryview:
        """Return what the carrier has, in the memory that all share; nothing at the end.

        Raises:
            OSError: As `ConnectionTransport.receive`.
        """
        area = self._area[:most_bytes]
        count = self._carrier.receive(area)
        if not count:
            self._engine.is_at_end = True
        return area[:count]

    def receive(self, buffer: memoryview) -> int:
        """Fill a buffer with what there is, and what the carrier has; returns how much it was.

        Raises:
            OSError: Of the carrier, or TlsFailedError.
        """
        if self._ahead:
            count = min(len(buffer), len(self._ahead))
            buffer[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
            return count
        engine = self._engine
        total = 0 if engine.is_drained else engine.decrypt(buffer)
        for _ in range(_MOST_PIECES):
            room = len(buffer) - total
            # Records that one call does not decrypt have to wait, and so has the carrier.
            if not room or engine.is_at_end or not engine.is_drained:
                break
            most_bytes = min(PIECE_BYTES, max(RECORD_BYTES, room))
            try:
                area = self.take(most_bytes)
            except BlockingIOError:
                break
            total += engine.receive(area, buffer[total:])
            if engine.said_bytes:
                self._send_unasked()
            if len(area) < most_bytes:  # there was no more
                break
        return total

    def _send_unasked(self) -> None:
        """Send what the engine itself says to the peer, such as that there are no new keys.

        Raises:
            OSError: There is too much of it, which the peer does not read.
        """
        if not self._sending.flush() and self._engine.said_bytes > RECORD_BYTES:
            raise TlsFailedError("it has TLS answer again and again, and does not read that")

    def is_at_end(self) -> bool:
        """Tell whether only the end is unread; a record that is there is decrypted for that.

        Raises:
            OSError: Of the carrier, or TlsFailedError.
        """
        engine = self._engine
        if self._ahead or engine.is_at_end:
            return not self._ahead
        look = memoryview(bytearray(RECORD_BYTES))
        count = 0 if engine.is_drained else engine.decrypt(look)
        if not count and not engine.is_at_end and engine.is_drained:
            with contextlib.suppress(BlockingIOError, InterruptedError):  # nothing has come
                count = engine.receive(self.take(RECORD_BYTES), look)
        if engine.said_bytes:
            self._send_unasked()
        self._ahead = bytes(look[:count])
        return not count and engine.is_at_end
