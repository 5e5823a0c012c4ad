"""TLS without I/O: records in, plain bytes out, and vice versa.

Python's ssl does the cryptography, over two memory BIOs. Record boundaries are parsed here as well,
so that ssl is only called when there are plain bytes. A BIO never shrinks, so each is given one
record at a time: an idle connection has 42 KiB for both, instead of 140.

A peer is limited in records, not only in bytes: one of 27 bytes with new keys costs as much time as
16 KiB of data.

Source: RFC 8446 (records, close_notify).
"""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING, Final, cast

from wirebroker.net.tls.tls_error import TlsFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

# The longest record (RFC 8446, 5.2), rounded up, and content (5.1).
RECORD_BYTES: Final = 17 << 10
PLAIN_BYTES: Final = 16 << 10
_HEADER_BYTES: Final = 5
# Limit of records per call: 64 small ones take 0.4 ms.
MOST_RECORDS: Final = 64
# Certificate chains rarely need 10.
MOST_HANDSHAKE_RECORDS: Final = 256
# Limit of records without data (new keys, alerts), and bytes of data that allow one more. Go
# refuses the 17th in a row, BoringSSL the 33rd.
MOST_IDLE_RECORDS: Final = 32
BYTES_FOR_IDLE_RECORD: Final = 4 << 10
_NOTHING: Final = memoryview(b"")

_CAUSES: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate cannot be verified",
    "NO_SHARED_CIPHER": "no common cipher suite",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it sent no certificate, but one is required",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it reports that our certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust our certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust our certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no common TLS version",
    "UNSUPPORTED_PROTOCOL": "no common TLS version",
}


class TlsEngine:
    """The server's side of one connection, set up when the first bytes arrive.

    `is_at_end` is set when the peer announces its end; the owner sets it when the carrier ends.
    """

    __slots__ = (
        "_context",
        "_data_bytes",
        "_engine",
        "_handshake_records",
        "_head",
        "_idle_records",
        "_incoming",
        "_is_fed",
        "_is_set_up",
        "_missing_bytes",
        "_outgoing",
        "_read",
        "_waiting",
        "is_at_end",
    )

    # The record being fed lacks _missing_bytes, or _head is a part of its header. _is_fed: ssl has
    # a complete record, or plain bytes. Between calls _waiting begins with a complete record, or is
    # empty.

    _engine: ssl.SSLObject
    _read: Callable[[int, memoryview], int]

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._is_set_up = False
        self._handshake_records = 0
        self._idle_records = 0
        self._data_bytes = 0
        self._missing_bytes = 0
        self._head = b""
        self._is_fed = False
        self._waiting = _NOTHING
        self.is_at_end = False

    @property
    def is_drained(self) -> bool:
        """Whether it needs more input."""
        return not self._is_fed and not self._waiting

    @property
    def held_bytes(self) -> int:
        """Bytes that wait to be decrypted or sent."""
        return len(self._waiting) + self._incoming.pending + self._outgoing.pending

    @property
    def outgoing_bytes(self) -> int:
        """Bytes for the peer."""
        return self._outgoing.pending

    def said(self) -> bytes:
        """Remove and return the records for the peer."""
        return self._outgoing.read()

    # --- the handshake ---

    def shake_hands(self, area: memoryview) -> bool:
        """Continue with the received bytes; return whether the handshake is done.

        Raises:
            TlsFailedError: It failed.
        """
        if not self._is_set_up:
            self._set_up()
        self._take(area)
        is_done = False
        while not is_done and self._feed():
            self._handshake_records += 1
            if self._handshake_records > MOST_HANDSHAKE_RECORDS:
                raise TlsFailedError(f"it sends more than {MOST_HANDSHAKE_RECORDS} records")
            is_done = self._step()
        # The first request may have arrived, too.
        self._keep()
        return is_done

    def _set_up(self) -> None:
        self._is_set_up = True
        self._engine = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._read = cast("Callable[[int, memoryview], int]", self._engine.read)

    def _step(self) -> bool:
        self._is_fed = False
        try:
            self._engine.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise TlsFailedError(_cause(error)) from error
        return True

    def certificate(self) -> bytes | None:
        """Return the peer's certificate (DER), if any."""
        return self._engine.getpeercert(binary_form=True) or None

    # --- decryption ---

    def receive(self, area: memoryview, buffer: memoryview) -> int:
        """Take received bytes, and `decrypt`.

        Raises:
            TlsFailedError: The peer has violated TLS.
        """
        self._take(area)
        return self.decrypt(buffer)

    def decrypt(self, buffer: memoryview) -> int:
        """Fill a buffer with the plain bytes of at most MOST_RECORDS records; return their number.

        Raises:
            TlsFailedError: The peer has violated TLS.
        """
        total = 0
        for _ in range(MOST_RECORDS):
            if total == len(buffer) or self.is_at_end or not (self._is_fed or self._feed()):
                break
            total += self._decrypt_record(buffer[total:])
        self._keep()
        return total

    def _decrypt_record(self, buffer: memoryview) -> int:
        try:
            count = self._read(len(buffer), buffer)
        except ssl.SSLWantReadError:
            self._is_fed = False
            self._count_idle_record()
            return 0
        except ssl.SSLZeroReturnError:
            count = 0
        except ssl.SSLError as error:
            raise TlsFailedError(_cause(error)) from error
        if not count:
            self.is_at_end = True
        self._is_fed = not self.is_at_end and self._engine.pending() > 0
        self._data_bytes += count
        return count

    def _count_idle_record(self) -> None:
        earned, self._data_bytes = divmod(self._data_bytes, BYTES_FOR_IDLE_RECORD)
        self._idle_records = max(0, self._idle_records - earned) + 1
        if self._idle_records > MOST_IDLE_RECORDS:
            raise TlsFailedError("it sends too many records without data")

    # --- record boundaries ---

    def _take(self, area: memoryview) -> None:
        self._waiting = memoryview(bytes(self._waiting) + area) if self._waiting else area

    def _keep(self) -> None:
        """Feed an incomplete record; copy waiting bytes out of the shared memory."""
        if self._waiting and self._lacking_bytes() > len(self._waiting):
            self._feed()
        self._waiting = memoryview(bytes(self._waiting)) if self._waiting else _NOTHING

    def _lacking_bytes(self) -> int:
        """Return how many bytes complete the current record, or its header."""
        if self._missing_bytes:
            return self._missing_bytes
        lacking = _HEADER_BYTES - len(self._head)
        head = self._head + self._waiting[:lacking]
        return lacking if len(head) < _HEADER_BYTES else lacking + (head[3] << 8 | head[4])

    def _feed(self) -> bool:
        """Pass the next record, or the available part, to ssl.

        Return whether it is complete, or too long: reading it then raises the error.
        """
        waiting = self._waiting
        if not waiting:
            return False
        lacking = self._lacking_bytes()
        if lacking <= len(waiting):
            self._incoming.write(waiting[:lacking])
            self._waiting = waiting[lacking:]
            self._missing_bytes, self._head = 0, b""
            self._is_fed = True
            return True
        self._incoming.write(waiting)
        self._waiting = _NOTHING
        head = self._head + waiting[: _HEADER_BYTES - len(self._head)]
        if not self._missing_bytes and len(head) < _HEADER_BYTES:
            self._head = head
            return False
        self._missing_bytes, self._head = lacking - len(waiting), b""
        if self._missing_bytes > RECORD_BYTES:
            self._is_fed = True
        return self._is_fed

    # --- encryption ---

    def encrypt(self, data: memoryview) -> bytes:
        """Return the records of some bytes.

        Raises:
            TlsFailedError: The peer has violated TLS.
        """
        records: list[bytes] = []
        count = 0
        try:
            while count < len(data):
                count += self._engine.write(data[count : count + PLAIN_BYTES])
                records.append(self._outgoing.read())
        except ssl.SSLError as error:
            raise TlsFailedError(_cause(error)) from error
        return records[0] if len(records) == 1 else b"".join(records)

    def send_close_notify(self) -> None:
        """Create a close_notify record; the peer's is not awaited."""
        with contextlib.suppress(ssl.SSLError):
            self._engine.unwrap()


def _cause(error: ssl.SSLError) -> str:
    reason = str(error.reason or error)
    message = getattr(error, "verify_message", "")
    return _CAUSES.get(reason, reason.lower().replace("_", " ")) + (
        f" ({message})" if message else ""
    )
