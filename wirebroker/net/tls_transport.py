"""TLS over another transport: a connection sees plain bytes, its carrier the records of TLS.

    carrier readable ──► incoming BIO ──► engine ──► Connection
    carrier          ◄── outgoing BIO ◄── engine ◄── SendQueue

Python's ssl does the cryptography and no I/O: loop, backpressure and memory stay ours. Bounds:

- a handshake may take `deadline_s` and 128 KiB; its steps, of which one costs up to some
  milliseconds, are done one a turn of the loop (`TlsTurns`), so that many that connect at once hold
  nobody up;
- of what is received at most 64 KiB wait to be decrypted;
- at most 64 KiB are encrypted ahead of what the carrier takes. They count as unsent until it has
  taken them: whoever waits for the queue to be empty waits for the peer's bytes. So a slow reader
  holds one such piece. File slices are read, and encrypted, in the same pieces;
- of what TLS itself answers (RFC 5246: no new keys) what one piece asks for may stay unread;
- all that waits here, in either direction, is counted in the budget of requests in flight
  (memory_budget.py). When that is used up one record is encrypted ahead, instead of four.

A BIO keeps for ever as much memory as it once held, so it is given a record at a time: a connection
at rest has 42 KiB for both, instead of 140 (measured, after 64 KiB in each direction).

A transport is the `Sockets` of its own connection: what is decrypted and not taken yet makes it
readable, which no poller knows. A handshake that fails is one log line with the peer and the cause.

Source: RFC 8446 (records, close_notify); Kafka's SslTransportLayer.
"""

from __future__ import annotations

import contextlib
import logging
import ssl
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.tls_error import TlsFailedError
from wirebroker.net.transport import ConnectionTransport

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from wirebroker.net.memory_budget import MemoryBudget
    from wirebroker.storage.files import DataFile

logger = logging.getLogger("wirebroker.net")

# What is received and sent at a time, four records.
_PIECE_BYTES: Final = 64 << 10
# The longest record (RFC 8446, 5.2), and some; how much it carries (5.1).
_RECORD_BYTES: Final = 17 << 10
_PLAIN_BYTES: Final = 16 << 10
_NOTHING: Final = memoryview(b"")
# One call of `receive` takes at most so many pieces from the carrier.
_MOST_PIECES: Final = 4
# Of a client until it is through: chains of certificates seldom have 10.
_MOST_HANDSHAKE_BYTES: Final = 128 << 10
_HANDSHAKE: Final = 0x16
_HTTP_STARTS: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI")

# What OpenSSL says, in words for people.
_CAUSES: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate does not hold",
    "NO_SHARED_CIPHER": "there is no cipher suite that both sides take",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate, and one is required",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired, it says",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust our certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust our certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "there is no version of TLS that both sides take",
    "UNSUPPORTED_PROTOCOL": "there is no version of TLS that both sides take",
}


class TlsTurns:
    """Steps of handshakes, one in each turn of a loop; and memory that all of a loop share.

    Attributes:
        loop: Whose turns they are.
        area: What is received goes through it, within one call.
    """

    __slots__ = ("_waiting", "area", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.area = memoryview(bytearray(_PIECE_BYTES))
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, step: Callable[[], None]) -> None:
        """Call back in a turn of its own."""
        self._waiting.append(step)
        if len(self._waiting) == 1:
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        try:
            self._waiting[0]()
        finally:
            self._waiting.popleft()
            if self._waiting:
                self.loop.call_soon(self._next)


class TlsTransport(ConnectionTransport):
    """The server's side of TLS."""

    __slots__ = (
        "_ahead",
        "_budget",
        "_carrier",
        "_deadline",
        "_engine",
        "_fault",
        "_handshake_bytes",
        "_has_begun",
        "_has_end",
        "_held_bytes",
        "_incoming",
        "_is_closed",
        "_is_drained",
        "_is_secured",
        "_is_told",
        "_on_secured",
        "_outgoing",
        "_owed",
        "_read",
        "_reader",
        "_turns",
        "_unsent",
        "_who",
        "_writer",
    )

    # _owed > 0 => bytes of the carrier are unsent that encrypt so many, which nobody was told of.
    # _is_drained: the engine wants more before it gives anything.
    # _held_bytes == what this transport has added to the budget.

    def __init__(
        self,
        carrier: ConnectionTransport,
        context: ssl.SSLContext,
        turns: TlsTurns,
        *,
        who: str,
        deadline_s: float,
        on_secured: Callable[[ssl.SSLObject], None],
    ) -> None:
        """Begin when somebody wants to read.

        Args:
            carrier: Becomes this one's.
            context: Of a server.
            turns: The loop's.
            who: The peer and the listener, for log lines.
            deadline_s: How long the handshake may take.
            on_secured: Told once, before anything is read; may raise TlsFailedError or
                MalformedFrameError.
        """
        super().__init__(self, carrier.descriptor)
        self._carrier = carrier
        self._turns = turns
        self._who = who
        self._on_secured: Callable[[ssl.SSLObject], None] | None = on_secured
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._engine = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # It takes any buffer, and returns how much it has read into it.
        self._read = cast("Callable[[int, memoryview], int]", self._engine.read)
        self._deadline: asyncio.TimerHandle | None = turns.loop.call_later(
            deadline_s, self._on_deadline
        )
        self._handshake_bytes = 0
        # Whether the peer has sent anything.
        self._has_begun = False
        self._is_secured = False
        self._is_drained = True
        self._is_closed = False
        self._has_end = False
        self._fault: OSError | None = None
        # Plain bytes that a look for the end has found.
        self._ahead = b""
        self._unsent = _NOTHING
        self._owed = 0
        self._budget: MemoryBudget | None = None
        self._held_bytes = 0
        self._reader: Callable[[], None] | None = None
        self._writer: Callable[[], None] | None = None
        self._is_told = False

    def use_budget(self, budget: MemoryBudget) -> None:
        """Count there what waits to be decrypted, or taken by the peer."""
        self._budget = budget
        self._count()

    def _count(self) -> None:
        budget = self._budget
        if budget is None:
            return
        held_bytes = 0
        if not self._is_closed:
            held_bytes = self._incoming.pending + self._outgoing.pending + len(self._ahead)
            # A view of what is left keeps all of it.
            held_bytes += len(cast("bytes", self._unsent.obj))
        if held_bytes != self._held_bytes:
            budget.add(held_bytes - self._held_bytes)
            self._held_bytes = held_bytes

    # --- readiness, told to the connection (poller.Sockets) ---

    def add_reader(self, _fd: int, callback: Callable[[], None], /) -> None:
        """Call back whenever there are plain bytes, or the end."""
        self._reader = callback
        self._carrier.sockets.add_reader(self._carrier.descriptor, self._on_carrier_readable)
        self._look()

    def remove_reader(self, _fd: int, /) -> None:
        """Do so no more."""
        self._reader = None
        self._carrier.sockets.remove_reader(self._carrier.descriptor)

    def add_writer(self, _fd: int, callback: Callable[[], None], /) -> None:
        """Call back whenever plain bytes are taken."""
        self._writer = callback
        self._carrier.sockets.add_writer(self._carrier.descriptor, self._on_carrier_writable)

    def remove_writer(self, _fd: int, /) -> None:
        """Do so no more."""
        self._writer = None
        if not self._unsent:
            self._carrier.sockets.remove_writer(self._carrier.descriptor)

    def _look(self) -> None:
        """Tell in the loop's next turn, if there is something that the carrier won't tell of."""
        is_readable = self._fault is not None or self._has_end or self._has_plain
        if is_readable and self._reader is not None and not self._is_told:
            self._is_told = True
            self._turns.loop.call_soon(self._tell)

    @property
    def _has_plain(self) -> bool:
        return bool(self._ahead) or not self._is_drained

    def _tell(self) -> None:
        self._is_told = False
        if self._reader is not None:
            self._reader()
            self._look()

    def _on_carrier_readable(self) -> None:
        if self._is_secured or self._fault is not None:
            if self._reader is not None:
                self._reader()
                self._look()
            return
        # Nothing more is read until the step is done.
        self._carrier.sockets.remove_reader(self._carrier.descriptor)
        self._turns.wait(self._shake_hands)

    def _on_carrier_writable(self) -> None:
        try:
            if not self._flush():
                return
        except OSError as error:
            self._break(error)
            return
        if self._writer is not None:
            self._writer()
        else:
            self._carrier.sockets.remove_writer(self._carrier.descriptor)

    # --- the handshake ---

    def _shake_hands(self) -> None:
        """Go on with what has arrived."""
        if self._is_closed:
            return
        try:
            self._feed(_RECORD_BYTES)
            if self._is_acceptable():
                self._engine.do_handshake()
                self._is_secured = True
        except ssl.SSLWantReadError:
            pass  # its next record
        except BlockingIOError:
            pass  # it was none of the peer's bytes that woke us
        except ssl.SSLError as error:
            self._refuse(_cause(error))
        except OSError as fault:
            self._break(fault)
        self._after_step()

    def _is_acceptable(self) -> bool:
        if self._has_end:
            if self._has_begun:
                self._refuse("it has closed its connection (does it trust our certificate?)")
            else:  # a probe of the port
                self._break(ConnectionResetError("it has closed its connection"))
            return False
        if self._handshake_bytes > _MOST_HANDSHAKE_BYTES:
            self._refuse(f"it sends more than {_MOST_HANDSHAKE_BYTES} bytes")
            return False
        return self._fault is None

    def _after_step(self) -> None:
        """Send our part, and go on to read."""
        try:
            if not self._flush():
                self._carrier.sockets.add_writer(
                    self._carrier.descriptor, self._on_carrier_writable
                )
        except OSError as error:
            self._break(error)
        if self._is_secured:
            self._end_handshake()
            # The client's first request may have come with the end of its handshake.
            self._is_drained = False
        if self._reader is not None:
            self._carrier.sockets.add_reader(self._carrier.descriptor, self._on_carrier_readable)
        self._count()
        self._look()

    def _end_handshake(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        on_secured, self._on_secured = self._on_secured, None
        if on_secured is None or self._fault is not None:
            return
        try:
            on_secured(self._engine)
        except (TlsFailedError, MalformedFrameError) as error:
            self._refuse(str(error))

    def _on_deadline(self) -> None:
        self._deadline = None
        self._refuse("it took too long (wirebroker.authentication.deadline.ms)")
        self._look()

    def _refuse(self, cause: str) -> None:
        """End with a line in the log."""
        if self._fault is None:
            logger.warning("closing %s: the TLS handshake failed: %s", self._who, cause)
            self._fault = TlsFailedError(cause)

    def _break(self, error: OSError) -> None:
        """End because the carrier has."""
        if self._fault is None:
            self._fault = error
        self._look()

    # --- receiving ---

    def receive(self, buffer: memoryview) -> int:
        """Receive what is decrypted."""
        if self._fault is not None:
            raise self._fault
        if not self._is_secured:
            if self._has_end:
                return 0
            raise BlockingIOError
        if self._ahead:
            count = min(len(buffer), len(self._ahead))
            buffer[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
        else:
            count = self._receive(buffer)
        self._count()
        if not count and not self._has_end:
            raise BlockingIOError
        return count

    def _receive(self, buffer: memoryview) -> int:
        """Decrypt what there is, and what the carrier has; returns how many bytes there were."""
        total = self._decrypt_all(buffer)
        for _ in range(_MOST_PIECES):
            room = len(buffer) - total
            if not room or self._has_end:
                break
            try:
                area = self._take(min(_PIECE_BYTES, max(_RECORD_BYTES, room)))
            except BlockingIOError:
                break
            for start in range(0, len(area), _RECORD_BYTES):
                self._incoming.write(area[start : start + _RECORD_BYTES])
                self._is_drained = False
                total += self._decrypt_all(buffer[total:])
        return total

    def _decrypt_all(self, buffer: memoryview) -> int:
        """Fill a buffer from what the engine has; returns how many bytes there were."""
        total = 0
        while total < len(buffer) and not self._has_end:
            count = self._decrypt(buffer[total:])
            if not count:
                break
            total += count
        if self._outgoing.pending:
            self._send_unasked()
        return total

    def _send_unasked(self) -> None:
        """Send what the engine itself says to the peer, such as that there are no new keys.

        Raises:
            OSError: There is too much of it, which the peer does not read.
        """
        if self._flush():
            return
        if self._outgoing.pending > _RECORD_BYTES:
            raise self._broken("it has TLS answer again and again, and does not read that")
        self._carrier.sockets.add_writer(self._carrier.descriptor, self._on_carrier_writable)

    def _decrypt(self, buffer: memoryview) -> int:
        """Return how many plain bytes there were; 0 if more has to come, or at the end."""
        try:
            count = self._read(len(buffer), buffer)
        except ssl.SSLWantReadError:
            self._is_drained = True
            return 0
        except ssl.SSLZeroReturnError:
            count = 0
        except ssl.SSLError as error:
            raise self._broken(_cause(error)) from error
        if not count:
            self._has_end = True
        return count

    def _broken(self, cause: str) -> TlsFailedError:
        """Return what ends a connection whose peer broke TLS; said here, once."""
        logger.warning("closing %s: %s", self._who, cause)
        self._fault = TlsFailedError(cause)
        return self._fault

    def _feed(self, most_bytes: int) -> bool:
        """Give the engine what the carrier has; returns whether it was anything but the end.

        Raises:
            OSError: As `receive`.
        """
        area = self._take(most_bytes)
        if not area:
            return False
        if not self._has_begun:
            self._has_begun = True
            self._check_start(bytes(area[:4]))
        self._handshake_bytes += 0 if self._is_secured else len(area)
        self._incoming.write(area)
        # Of a handshake nothing is for a reader, who would be told of it in each turn.
        self._is_drained = not self._is_secured
        return True

    def _take(self, most_bytes: int) -> memoryview:
        """Return what the carrier has, in the memory that all share; nothing at the end."""
        area = self._turns.area[:most_bytes]
        count = self._carrier.receive(area)
        if not count:
            self._has_end = True
        return area[:count]

    def _check_start(self, start: bytes) -> None:
        """Refuse who speaks something else, by a line that says what."""
        if start[0] == _HANDSHAKE:
            return
        if start in _HTTP_STARTS:
            self._refuse("an HTTP client is talking to a listener with TLS")
        else:
            self._refuse("it speaks no TLS (security.protocol=PLAINTEXT, to a listener with TLS?)")

    # --- sending ---

    def send(self, data: bytes) -> int:
        """Send what is taken."""
        return self.send_piece(data, has_more=False)

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """Send what is taken, at most a piece; or tell what of an earlier one has left."""
        del has_more
        if self._owed:
            return self._pay()
        if self._fault is not None:
            raise self._fault
        if not self._is_secured or not self._flush():
            raise BlockingIOError
        count = self._encrypt(memoryview(data))
        if self._flush():
            return count
        self._owed = count
        raise BlockingIOError

    def _encrypt(self, data: memoryview) -> int:
        """Encrypt of some bytes a piece, which is unsent then; returns how many."""
        is_short = self._budget is not None and self._budget.is_exceeded
        data = data[: _PLAIN_BYTES if is_short else _PIECE_BYTES]
        records: list[bytes] = []
        count = 0
        try:
            while count < len(data):
                count += self._engine.write(data[count : count + _PLAIN_BYTES])
                records.append(self._outgoing.read())
        except ssl.SSLError as error:
            raise self._broken(_cause(error)) from error
        self._unsent = memoryview(records[0] if len(records) == 1 else b"".join(records))
        return count

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """Send of a file what is taken, at most a piece."""
        if self._owed:
            return self._pay()
        data = file.read_at(position, min(count, _PIECE_BYTES))
        return self.send_piece(data, has_more=True) if data else 0

    def _pay(self) -> int:
        """Tell of what was encrypted before, if it has left."""
        if self._fault is not None:
            raise self._fault
        if not self._flush():
            raise BlockingIOError
        owed, self._owed = self._owed, 0
        return owed

    def _flush(self) -> bool:
        """Hand what is encrypted to the carrier; returns whether it has taken everything."""
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    if self._held_bytes:
                        self._count()
                    return True
                self._unsent = memoryview(self._outgoing.read())
            try:
                sent = self._carrier.send_piece(self._unsent, has_more=False)
            except (BlockingIOError, InterruptedError):
                self._count()
                return False
            # What is sent is let go of: an empty view would keep it.
            self._unsent = self._unsent[sent:] if sent < len(self._unsent) else _NOTHING

    # --- the end ---

    def is_at_end(self) -> bool:
        """Tell whether only the end is unread; a record that is there is decrypted for that."""
        if self._fault is not None:
            raise self._fault
        if self._ahead:
            return False
        if self._has_end or not self._is_secured:
            return self._has_end
        look = memoryview(bytearray(_RECORD_BYTES))
        count = self._decrypt(look)
        if not count and not self._has_end:
            with contextlib.suppress(BlockingIOError, InterruptedError):  # nothing has come
                if self._feed(_RECORD_BYTES):
                    count = self._decrypt(look)
        self._ahead = bytes(look[:count])
        self._count()
        return not count and self._has_end

    def fault(self) -> OSError | None:
        """Return why it has failed, if it has."""
        return self._fault or self._carrier.fault()

    def close(self) -> None:
        """Tell the peer (close_notify), if it takes that at once, and let go."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._is_secured and self._fault is None and not self._unsent:
            # It wants the peer's answer, for which nobody waits.
            with contextlib.suppress(ssl.SSLError):
                self._engine.unwrap()
        # What it can't be told any more, or the alert that says why it was refused.
        with contextlib.suppress(OSError):
            self._flush()
        sockets, descriptor = self._carrier.sockets, self._carrier.descriptor
        sockets.remove_reader(descriptor)
        sockets.remove_writer(descriptor)
        self.descriptor = -1
        self.sockets = sockets
        self._reader = self._writer = self._on_secured = None
        self._count()
        self._carrier.close()


def _cause(error: ssl.SSLError) -> str:
    """Say what OpenSSL found, in words for people where there are some."""
    reason = str(error.reason or error)
    said = getattr(error, "verify_message", "")
    return _CAUSES.get(reason, reason.lower().replace("_", " ")) + (f" ({said})" if said else "")
