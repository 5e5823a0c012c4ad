"""TLS over another transport: a connection sees plain bytes, its carrier the records.

    carrier readable ──► TlsEngine ──► Connection
    carrier          ◄── TlsEngine ◄── SendQueue

README.md lists the limits. Further ones: a handshake's deadline includes its alert; TLS's own
responses (RFC 5246: no new keys) to one piece may stay unread; when the memory budget is exceeded,
one record is encrypted at a time instead of four.

Source: RFC 8446; Kafka's SslTransportLayer.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from wirebroker.base.log_bound import about
from wirebroker.codecs.errors import without_frames
from wirebroker.net.tls.tls_engine import PLAIN_BYTES, RECORD_BYTES, TlsEngine
from wirebroker.net.tls.tls_error import TlsFailedError
from wirebroker.net.tls.tls_handshake import TlsHandshake
from wirebroker.net.tls.tls_readiness import TlsReadiness
from wirebroker.net.tls.tls_turns import PIECE_BYTES

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from wirebroker.net.bounds.memory_budget import MemoryBudget
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.net.tls.tls_turns import TlsTurns
    from wirebroker.storage.files import DataFile

logger = logging.getLogger("wirebroker.net")


class TlsTransport(TlsReadiness):
    """The server's side of TLS."""

    __slots__ = (
        "_address",
        "_budget",
        "_engine",
        "_handshake",
        "_held_bytes",
        "_is_closed",
        "_listener_name",
        "_peer",
    )

    # _handshake is None <=> it is done.
    # _held_bytes == what this transport has added to the budget.

    def __init__(
        self,
        carrier: ConnectionTransport,
        context: ssl.SSLContext,
        turns: TlsTurns,
        *,
        peer: str,
        listener_name: str,
        deadline_s: float,
        on_secured: Callable[[bytes | None], None],
    ) -> None:
        """Own the carrier; begin when a reader is added.

        `on_secured` receives the peer's certificate (DER), if any, before anything is read; it may
        raise TlsFailedError or MalformedFrameError.
        """
        engine = TlsEngine(context)
        super().__init__(engine, carrier, turns)
        self._peer = peer
        self._address = peer.rpartition(":")[0].strip("[]")
        self._listener_name = listener_name
        self._engine = engine
        deadline = turns.loop.call_later(deadline_s, self._on_deadline)
        self._handshake: TlsHandshake | None = TlsHandshake(engine, on_secured, deadline)
        self._is_closed = False
        self._budget: MemoryBudget | None = None
        self._held_bytes = 0

    def use_budget(self, budget: MemoryBudget) -> None:
        """Count waiting bytes."""
        self._budget = budget
        self._count()

    def _count(self) -> None:
        budget = self._budget
        if budget is None:
            return
        held_bytes = 0
        if not self._is_closed:
            held_bytes = self._engine.held_bytes
            held_bytes += self._receiving.held_bytes + self._sending.held_bytes
        if held_bytes != self._held_bytes:
            budget.add(held_bytes - self._held_bytes)
            self._held_bytes = held_bytes

    # --- called by the carrier ---

    def _on_carrier_readable(self) -> None:
        if self._handshake is None or self._fault is not None:
            if self._reader is not None:
                self._reader()
                self._look()
            return
        self._carrier.sockets.remove_reader(self._carrier.descriptor)
        is_first = not self._handshake.has_said
        self._turns.wait(self._shake_hands, address=self._address, is_first=is_first)

    def _on_carrier_writable(self) -> None:
        try:
            if not self._flush():
                return
        except OSError as error:
            self._break(error)
        # A writer learns of errors here. Without one the carrier must not report its end each turn.
        if self._writer is not None:
            self._writer()
        else:
            self._carrier.sockets.remove_writer(self._carrier.descriptor)
        if self._fault is not None:
            self._look()

    # --- the handshake ---

    def _shake_hands(self) -> bool:
        """Continue; return whether something was computed."""
        handshake = self._handshake
        if self._is_closed or handshake is None:
            return False
        is_done = is_costly = False
        try:
            if self._fault is None:
                area = self._receiving.take(RECORD_BYTES)
                has_left = bool(area) and not handshake.has_said and self._carrier.is_at_end()
                is_costly = bool(area) and not has_left
                is_done = handshake.take(area, has_left=has_left)
        except BlockingIOError:
            pass  # woken without bytes from the peer
        except TlsFailedError as error:
            self._refuse(error)
        except OSError as fault:
            self._break(fault)
        self._after_step(handshake, is_done=is_done)
        return is_costly

    def _after_step(self, handshake: TlsHandshake, *, is_done: bool) -> None:
        try:
            if not self._flush():
                self._carrier.sockets.add_writer(
                    self._carrier.descriptor, self._on_carrier_writable
                )
            if is_done:
                self._handshake = None
                handshake.end()
        except TlsFailedError as error:
            self._refuse(error)
        except OSError as fault:
            self._break(fault)
        self._count()
        has_failed = self._handshake is not None and isinstance(self._fault, TlsFailedError)
        if has_failed and self._sending.has_unsent:
            return  # until the alert is sent, or the deadline
        if self._reader is not None:
            self._carrier.sockets.add_reader(self._carrier.descriptor, self._on_carrier_readable)
        self._look()

    def _on_deadline(self) -> None:
        self._refuse(TlsFailedError("it took too long (wirebroker.authentication.deadline.ms)"))
        self._tell()  # now, since a login's equal deadline would log another line

    def _refuse(self, error: TlsFailedError) -> None:
        if self._fault is None:
            self._fault = without_frames(error)
            self._say("closing %s on %s: the TLS handshake failed: %s", error)

    def _break(self, error: OSError) -> None:
        if self._fault is None:
            self._fault = without_frames(error)
        self._look()

    # --- receiving ---

    def receive(self, buffer: memoryview) -> int:
        """See ConnectionTransport."""
        if self._fault is not None:
            raise self._fault
        if self._handshake is not None:
            raise BlockingIOError
        try:
            count = self._receiving.receive(buffer)
        except TlsFailedError as error:
            self._broken(error)
            raise
        self._see_to_unsent()
        self._count()
        if not self._engine.is_drained:
            self._look()
        if not count and not self._engine.is_at_end:
            raise BlockingIOError
        return count

    def _see_to_unsent(self) -> None:
        """Send TLS's own records if the connection sends nothing."""
        if self._sending.has_unsent and self._writer is None:
            self._carrier.sockets.add_writer(self._carrier.descriptor, self._on_carrier_writable)

    def _broken(self, error: TlsFailedError) -> None:
        self._fault = error
        self._say("closing %s on %s: %s", error)

    def _say(self, sentence: str, error: TlsFailedError) -> None:
        bounds = about(self._peer, self._listener_name)
        logger.warning(sentence, self._peer, self._listener_name, error, extra=bounds)

    # --- sending ---

    def send(self, data: bytes) -> int:
        """See ConnectionTransport."""
        return self.send_piece(data, has_more=False)

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """Send at most a piece, or return the size of an earlier one that was sent."""
        del has_more
        if self._fault is not None:
            raise self._fault
        if self._handshake is not None:
            raise BlockingIOError
        sending = self._sending
        is_short = self._budget is not None and self._budget.is_exceeded
        try:
            if sending.has_waiting_piece:
                sent = sending.pay()
            else:
                most_bytes = PLAIN_BYTES if is_short else PIECE_BYTES
                sent = sending.send(memoryview(data)[:most_bytes])
        except TlsFailedError as error:
            self._broken(error)
            raise
        if not sent or self._held_bytes:
            self._count()
        if not sent:
            raise BlockingIOError
        return sent

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """Send at most one piece."""
        if self._sending.has_waiting_piece:
            return self.send_piece(b"", has_more=True)
        data = file.read_at(position, min(count, PIECE_BYTES))
        return self.send_piece(data, has_more=True) if data else 0

    def _flush(self) -> bool:
        is_done = self._sending.flush()
        if not is_done or self._held_bytes:
            self._count()
        return is_done

    # --- the end ---

    def is_at_end(self) -> bool:
        """See ConnectionTransport; may decrypt a record."""
        if self._fault is not None:
            raise self._fault
        if self._handshake is not None:
            return self._engine.is_at_end
        try:
            is_at_end = self._receiving.is_at_end()
        except TlsFailedError as error:
            self._broken(error)
            raise
        self._see_to_unsent()
        self._count()
        if not self._engine.is_drained:
            self._look()
        return is_at_end

    def fault(self) -> OSError | None:
        """See ConnectionTransport."""
        return self._fault or self._carrier.fault()

    def close(self) -> None:
        """Send close_notify if possible without waiting, and close."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._handshake is not None:
            self._handshake.cancel()
        elif self._fault is None and not self._sending.has_unsent:
            self._engine.send_close_notify()
        # Sends close_notify, or the alert of a refusal; the peer may be gone.
        with contextlib.suppress(OSError):
            self._flush()
        sockets, descriptor = self._carrier.sockets, self._carrier.descriptor
        sockets.remove_reader(descriptor)
        sockets.remove_writer(descriptor)
        self.descriptor = -1
        self.sockets = sockets
        self._reader = self._writer = self._handshake = None
        self._count()
        self._carrier.close()
