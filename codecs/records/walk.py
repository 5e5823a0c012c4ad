"""Validation of a producer's records, piece by piece; a record may be cut anywhere.

A record is refused if

    a number ends beyond the record, or exceeds its type in length or value; a length is beyond it
    the parts are more or less than its length; a header has no key; the header count is negative
    its offset delta is not its index in the batch

and the batch if bytes follow the last record, or it ends earlier. As in Kafka, any negative length
of a key or value means null, and timestamps are sums modulo 2**64.

Well-formed records that are not allowed (no required key, timestamp out of bounds) are listed in
`refused` and do not end the validation.

Source: KIP-82, KIP-98; Kafka's classes DefaultRecord and LogValidator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import read_varint, read_varlong
from wirebroker.codecs.records.whole_records import (
    CONTRADICTS,
    LONG_MAX,
    LONG_MIN,
    MISNUMBERED,
    NO_TIMESTAMP,
    RecordFaultError,
    walk_whole,
)

try:
    from wirebroker.codecs import _hot
except ImportError:  # no extension
    _hot = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.primitives import Buffer

# The response has a sentence for each, which costs 1 us. Kafka has no limit.
MAX_REFUSED: Final = 4096

# A record's index, and its invalid timestamp or None if it has no key.
Refused: TypeAlias = "tuple[int, int | None]"

_TOO_MANY: Final = "bytes follow the last record"
_TOO_LARGE: Final = "a record is larger than max.decompressed.message.bytes"


class RecordWalker:
    """One validation; `feed` it all pieces in order, then read `fault`.

    Attributes:
        max_timestamp: The largest timestamp, -1 if no record has one.
        refused: The first MAX_REFUSED records that are not allowed.
        refused_count: The number of all such records.
        effort: Work so far, roughly in microseconds; not counted in C.
    """

    __slots__ = (
        "_base_timestamp",
        "_bytes_left",
        "_count",
        "_digits",
        "_earliest",
        "_expects",
        "_fault",
        "_has_key",
        "_headers_left",
        "_index",
        "_latest",
        "_most_bytes",
        "_needs_key",
        "_skip",
        "_timestamp",
        "effort",
        "is_time_refused",
        "max_timestamp",
        "refused",
        "refused_count",
    )

    def __init__(  # noqa: PLR0917 - as in the C twin
        self,
        count: int,
        base_timestamp: int,
        earliest: int = LONG_MIN,
        latest: int = LONG_MAX,
        needs_key: bool = False,
        most_bytes: int = LONG_MAX,
    ) -> None:
        """Begin before the first record.

        `earliest` and `latest` are the valid timestamps, `most_bytes` the longest record.
        """
        self._count = count
        self._base_timestamp = base_timestamp
        self._earliest = earliest
        self._latest = latest
        self._needs_key = needs_key
        self._most_bytes = most_bytes
        self.max_timestamp = NO_TIMESTAMP
        self.refused: list[Refused] = []
        self.refused_count = 0
        self.is_time_refused = False
        self.effort = 0
        self._index = 0
        self._fault: str | None = None
        # In a cut record: the next part, what remains of it and of the record.
        self._expects: Callable[[int], None] | None = None  # None: a record's length
        self._digits = b""
        self._bytes_left = 0
        self._skip = 0
        self._headers_left = 0
        self._timestamp = 0
        self._has_key = False

    @property
    def fault(self) -> str | None:
        """Error of the records so far, as if they were complete."""
        if self._fault is not None:
            return self._fault
        if self._is_within_record or self._index != self._count:
            return f"{self._index} of {self._count} records are there"
        return None

    @property
    def _is_within_record(self) -> bool:
        return bool(self._expects or self._digits or self._skip)

    def feed(self, piece: Buffer) -> bool:
        """Validate the next piece; return False after an error."""
        if self._fault is not None:
            return False
        data = bytes(piece)
        position = 0
        end = len(data)
        try:
            while position < end:
                if self._is_within_record:
                    position = self._walk_cut(data, position)
                elif self._index == self._count:
                    self._fault = _TOO_MANY
                    break
                else:
                    before = position
                    position = self._walk_whole(data, position)
                    if position == before:
                        position = self._walk_cut(data, position)
        except RecordFaultError as fault:
            self._fault = str(fault)
        except (MalformedFrameError, IndexError):
            self._fault = CONTRADICTS
        return self._fault is None

    def _walk_whole(self, data: bytes, position: int) -> int:
        """Validate the records that lie completely in the piece; return the end position."""
        index, count, base_timestamp = self._index, self._count, self._base_timestamp
        most = self._most_bytes
        found = walk_whole(data, position, index, count, base_timestamp, most_bytes=most)
        end, self._index, oldest, latest, lacks_key, header_count = found
        self.effort += self._index - index + header_count
        if (
            latest > self._latest
            or oldest < self._earliest
            or (lacks_key and self._needs_key)
            or latest > LONG_MAX
            or oldest < LONG_MIN
        ):
            note = self._note_record
            walk_whole(data, position, index, count, base_timestamp, note, most_bytes=most)
        elif latest > self.max_timestamp:
            self.max_timestamp = latest
        return end

    def _note_record(self, index: int, timestamp: int, has_key: bool) -> None:
        if not LONG_MIN <= timestamp <= LONG_MAX:
            timestamp = (timestamp - LONG_MIN & (1 << 64) - 1) + LONG_MIN
        self.max_timestamp = max(self.max_timestamp, timestamp)
        if self._needs_key and not has_key:
            self._refuse(index, None)
        elif timestamp != NO_TIMESTAMP and not self._earliest <= timestamp <= self._latest:
            self.is_time_refused = True
            self._refuse(index, timestamp)

    def _refuse(self, index: int, timestamp: int | None) -> None:
        if self.refused_count < MAX_REFUSED:
            self.refused.append((index, timestamp))
        self.refused_count += 1

    # -- cut records -----------------------------------------------------------------------

    def _walk_cut(self, data: bytes, position: int) -> int:
        """Continue in a cut record to its end or the piece's; return the end position."""
        end = len(data)
        while position < end:
            if self._skip:
                step = min(self._skip, end - position)
                self._skip -= step
                position += step
            else:
                self._take_byte(data[position])
                position += 1
            if not self._is_within_record:
                break
        return position

    def _take_byte(self, byte: int) -> None:
        self.effort += 1
        if self._expects is not None:
            if not self._bytes_left:
                raise RecordFaultError(CONTRADICTS)
            self._bytes_left -= 1
        if self._expects == self._take_attributes:
            self._expects = self._take_timestamp
            return
        is_long = self._expects == self._take_timestamp
        self._digits += bytes((byte,))
        if byte >= 0x80 and len(self._digits) < (10 if is_long else 5):
            return
        read = read_varlong if is_long else read_varint
        number, _ = read(self._digits, 0)  # raises if it is too long
        self._digits = b""
        if self._expects is None:
            self._take_length(number)
        else:
            self._expects(number)

    def _take_length(self, number: int) -> None:
        if number < 0:
            raise RecordFaultError(CONTRADICTS)
        if number > self._most_bytes:
            raise RecordFaultError(_TOO_LARGE)
        self._bytes_left = number
        self._expects = self._take_attributes

    def _take_attributes(self, number: int) -> None:
        raise AssertionError(number)  # attributes are one byte, handled in _take_byte

    def _take_timestamp(self, number: int) -> None:
        self._timestamp = self._base_timestamp + number
        self._expects = self._take_offset

    def _take_offset(self, number: int) -> None:
        if number != self._index:
            raise RecordFaultError(MISNUMBERED)
        self._expects = self._take_key_length

    def _take_key_length(self, number: int) -> None:
        self._has_key = number >= 0
        self._pass(number)
        self._expects = self._take_value_length

    def _take_value_length(self, number: int) -> None:
        self._pass(number)
        self._expects = self._take_header_count

    def _take_header_count(self, number: int) -> None:
        if number < 0:
            raise RecordFaultError(CONTRADICTS)
        self._headers_left = number
        self._expect_header()

    def _take_header_key_length(self, number: int) -> None:
        if number < 0:
            raise RecordFaultError(CONTRADICTS)
        self._pass(number)
        self._expects = self._take_header_value_length

    def _take_header_value_length(self, number: int) -> None:
        self._pass(number)
        self._headers_left -= 1
        self._expect_header()

    def _expect_header(self) -> None:
        if self._headers_left:
            self._expects = self._take_header_key_length
            return
        if self._bytes_left:
            raise RecordFaultError(CONTRADICTS)
        self._expects = None
        self._note_record(self._index, self._timestamp, self._has_key)
        self._index += 1

    def _pass(self, length: int) -> None:
        if length > self._bytes_left:
            raise RecordFaultError(CONTRADICTS)
        self._skip = max(length, 0)
        self._bytes_left -= self._skip


# Whether the walk is as fast as a copy and releases the GIL.
IS_QUICK: Final = _hot is not None

if _hot is not None:
    RecordWalker = _hot.RecordWalker  # type: ignore[assignment, misc]
