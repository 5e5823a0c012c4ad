"""Receiving over TLS: bytes of the carrier are decrypted on demand.

At most one piece waits to be decrypted, a limited number of records per call.
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

# Limit of pieces from the carrier per `receive`.
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
        """`area` is for records within a call, shared by all connections."""
        self._engine = engine
        self._carrier = carrier
        self._sending = sending
        self._area = area
        # Plain bytes found by `is_at_end`.
        self._ahead = b""

    @property
    def held_bytes(self) -> int:
        """Plain bytes that wait."""
        return len(self._ahead)

    @property
    def is_readable(self) -> bool:
        """Whether there is something that the carrier does not report."""
        engine = self._engine
        return bool(self._ahead) or engine.is_at_end or not engine.is_drained

    def take(self, most_bytes: int) -> memoryview:
        """Receive from the carrier into the shared memory; return the bytes.

        Raises:
            OSError: As `ConnectionTransport.receive`.
        """
        area = self._area[:most_bytes]
        count = self._carrier.receive(area)
        if not count:
            self._engine.is_at_end = True
        return area[:count]

    def receive(self, buffer: memoryview) -> int:
        """Fill a buffer with decrypted bytes; return their number.

        Raises:
            OSError: From the carrier, or TlsFailedError.
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
            if not room or engine.is_at_end or not engine.is_drained:
                break
            most_bytes = min(PIECE_BYTES, max(RECORD_BYTES, room))
            try:
                area = self.take(most_bytes)
            except BlockingIOError:
                break
            total += engine.receive(area, buffer[total:])
            if engine.outgoing_bytes:
                self._send_unasked()
            if len(area) < most_bytes:
                break
        return total

    def _send_unasked(self) -> None:
        """Send the engine's own records, such as a refusal of new keys."""
        if not self._sending.flush() and self._engine.outgoing_bytes > RECORD_BYTES:
            raise TlsFailedError("it requests TLS replies but does not read them")

    def is_at_end(self) -> bool:
        """Return whether only the end is unread, decrypting a record if necessary.

        Raises:
            OSError: From the carrier, or TlsFailedError.
        """
        engine = self._engine
        if self._ahead or engine.is_at_end:
            return not self._ahead
        buffer = memoryview(bytearray(RECORD_BYTES))
        count = 0 if engine.is_drained else engine.decrypt(buffer)
        if not count and not engine.is_at_end and engine.is_drained:
            with contextlib.suppress(BlockingIOError, InterruptedError):  # nothing has arrived
                count = engine.receive(self.take(RECORD_BYTES), buffer)
        if engine.outgoing_bytes:
            self._send_unasked()
        self._ahead = bytes(buffer[:count])
        return not count and engine.is_at_end
