"""TLS without I/O: records in, plain bytes out, and the other way round.

Python's ssl does the cryptography, over two BIOs in memory. Where a record ends is read here as
well (RFC 8446, 5.1), so that the library is asked for plain bytes when there are some.

A BIO keeps for ever as much memory as it once held, so each is given a record at a time: a
connection at rest has 42 KiB for both, instead of 140 (measured, after 64 KiB in each direction).

Source: RFC 8446 (records, close_notify).
"""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING, Final, cast

from wirebroker.net.tls_error import TlsFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

# The longest record (RFC 8446, 5.2), and some; how much it carries (5.1).
RECORD_BYTES: Final = 17 << 10
PLAIN_BYTES: Final = 16 << 10
_HEADER_BYTES: Final = 5

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


class TlsEngine:
    """The server's side of one connection.

    Attributes:
        is_drained: It wants more before it gives anything.
        is_at_end: The peer has said that nothing follows (or its carrier, by whoever sets it).
    """

    __slots__ = (
        "_engine",
        "_head",
        "_incoming",
        "_missing_bytes",
        "_outgoing",
        "_read",
        "is_at_end",
        "is_drained",
    )

    # Of the record that is being fed _missing_bytes are to come, or _head is less than its header.

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._engine = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # It takes any buffer, and returns how much it has read into it.
        self._read = cast("Callable[[int, memoryview], int]", self._engine.read)
        self._missing_bytes = 0
        self._head = b""
        self.is_drained = True
        self.is_at_end = False

    @property
    def held_bytes(self) -> int:
        """What waits to be decrypted, or to be taken."""
        return self._incoming.pending + self._outgoing.pending

    @property
    def said_bytes(self) -> int:
        """How much there is for the peer."""
        return self._outgoing.pending

    def said(self) -> bytes:
        """Return records for the peer; they are not here any more."""
        return self._outgoing.read()

    # --- the handshake ---

    def shake_hands(self, area: memoryview) -> bool:
        """Go on with what has arrived; return whether that was the end.

        Raises:
            TlsFailedError: The two don't agree.
        """
        self.feed(area)
        try:
            self._engine.do_handshake()
        except ssl.SSLWantReadError:
            self.is_drained = True
            return False
        except ssl.SSLError as error:
            raise TlsFailedError(_cause(error)) from error
        # The client's first request may have come with the end of its handshake.
        self.is_drained = False
        return True

    def certificate(self) -> bytes | None:
        """Return the peer's, if it has shown one (DER)."""
        return self._engine.getpeercert(binary_form=True) or None

    # --- from records to plain bytes ---

    def feed(self, area: memoryview) -> None:
        """Take what has arrived, as it is."""
        start = 0
        while start < len(area):
            start = self._end_of_record(area, start)
        self._incoming.write(area)

    def receive(self, area: memoryview, buffer: memoryview) -> int:
        """Take what has arrived, and fill a buffer with plain bytes; return how many.

        Raises:
            TlsFailedError: The peer has broken TLS.
        """
        start = count = 0
        while start < len(area):
            end = self._end_of_record(area, start)
            self._incoming.write(area[start:end])
            start = end
            if not self.is_drained and count < len(buffer):
                count += self.decrypt(buffer[count:])
        return count

    def _end_of_record(self, area: memoryview, start: int) -> int:
        """Return where the record ends that is begun, or the area; note whether it is whole."""
        missing_bytes = self._missing_bytes
        if not missing_bytes:
            lacking = _HEADER_BYTES - len(self._head)
            head = self._head + area[start : start + lacking]
            if len(head) < _HEADER_BYTES:
                self._head = head
                return len(area)
            self._head = b""
            length = head[3] << 8 | head[4]
            missing_bytes = lacking + length
            if length > RECORD_BYTES:  # none is so long: whoever reads it says so
                self.is_drained = False
        end = start + missing_bytes
        if end > len(area):
            self._missing_bytes = end - len(area)
            return len(area)
        self._missing_bytes = 0
        self.is_drained = False
        return end

    def decrypt(self, buffer: memoryview) -> int:
        """Fill a buffer from what there is; return how many bytes that were.

        Raises:
            TlsFailedError: The peer has broken TLS.
        """
        total = 0
        while total < len(buffer) and not self.is_drained and not self.is_at_end:
            try:
                count = self._read(len(buffer) - total, buffer[total:])
            except ssl.SSLWantReadError:
                self.is_drained = True
                break
            except ssl.SSLZeroReturnError:
                count = 0
            except ssl.SSLError as error:
                raise TlsFailedError(_cause(error)) from error
            if not count:
                self.is_at_end = True
            total += count
            if not self._incoming.pending and not self._engine.pending():
                self.is_drained = True
        return total

    # --- from plain bytes to records ---

    def encrypt(self, data: memoryview) -> bytes:
        """Return the records that carry some bytes.

        Raises:
            TlsFailedError: The peer has broken TLS.
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

    def say_end(self) -> None:
        """Have a record say that nothing follows (close_notify)."""
        # It wants the peer's answer, for which nobody waits.
        with contextlib.suppress(ssl.SSLError):
            self._engine.unwrap()


def _cause(error: ssl.SSLError) -> str:
    """Say what OpenSSL found, in words for people where there are some."""
    reason = str(error.reason or error)
    said = getattr(error, "verify_message", "")
    return _CAUSES.get(reason, reason.lower().replace("_", " ")) + (f" ({said})" if said else "")
