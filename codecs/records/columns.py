"""The records of many batches as columns in Apache Arrow's layout, for readers of whole logs.

Numbers have the machine's byte order. A column of bytes is

    ends      int32 x (rows + 1), the first 0: row n is data[ends[n]:ends[n + 1]]
    data      the fields, concatenated
    validity  a bit a row, the lowest first; 0: null

Headers are the bounds of each row's pairs (`ends`), and two columns of bytes. A row without headers
is null, as in Spark's connector.

The C version reuses a returned bytearray once nothing else refers to it: keep it, or a view of it,
while you read.

Source: Apache Arrow's columnar format.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.record import read_records

try:
    from wirebroker.codecs import _hot
except ImportError:  # no extension
    _hot = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer

_MOST_BYTES: Final = (1 << 31) - 1
_SEQUENCE_MASK: Final = (1 << 31) - 1
_LONG_MIN: Final = -(1 << 63)

Column: TypeAlias = "bytes | bytearray"
TakenBytes: TypeAlias = "tuple[Column, Column, Column, int]"
TakenHeaders: TypeAlias = "tuple[Column, Column, int, TakenBytes, TakenBytes]"
TakenColumns: TypeAlias = (
    "tuple[int, Column, Column, Column, TakenBytes | None, TakenBytes | None, TakenHeaders | None]"
)


class BytesColumn(NamedTuple):
    """A column of bytes."""

    ends: Column
    data: Column
    validity: Column
    null_count: int

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.ends) // 4 - 1


class HeadersColumn(NamedTuple):
    """The headers of each row."""

    ends: Column
    validity: Column
    null_count: int
    keys: BytesColumn
    values: BytesColumn


class ColumnBuffers(NamedTuple):
    """The result of `RecordColumns.take` with names; None: not requested.

    Attributes:
        offsets: int64.
        timestamps: int64, milliseconds since 1970; -1: none.
        sequences: int32; -1: none.
    """

    row_count: int
    offsets: Column
    timestamps: Column
    sequences: Column
    keys: BytesColumn | None
    values: BytesColumn | None
    headers: HeadersColumn | None


def named(taken: TakenColumns) -> ColumnBuffers:
    """Return the columns with names."""
    row_count, offsets, timestamps, sequences, keys, values, headers = taken
    return ColumnBuffers(
        row_count,
        offsets,
        timestamps,
        sequences,
        None if keys is None else BytesColumn(*keys),
        None if values is None else BytesColumn(*values),
        None
        if headers is None
        else HeadersColumn(*headers[:3], BytesColumn(*headers[3]), BytesColumn(*headers[4])),
    )


class _Bits:
    __slots__ = ("_bits", "zero_count")

    def __init__(self) -> None:
        self._bits: list[bool] = []
        self.zero_count = 0

    def append(self, *, is_set: bool) -> None:
        self._bits.append(is_set)
        self.zero_count += not is_set

    def packed(self) -> bytes:
        packed = bytearray((len(self._bits) + 7) // 8)
        for row, is_set in enumerate(self._bits):
            packed[row >> 3] |= is_set << (row & 7)
        return bytes(packed)


class _Fields:
    __slots__ = ("_validity", "data", "ends")

    def __init__(self) -> None:
        self.ends = array("i", (0,))
        self.data = bytearray()
        self._validity = _Bits()

    def append(self, field: bytes | None) -> None:
        self._validity.append(is_set=field is not None)
        self.data += field or b""
        self.ends.append(len(self.data))

    def taken(self) -> TakenBytes:
        validity = self._validity
        return self.ends.tobytes(), bytes(self.data), validity.packed(), validity.zero_count


class RecordColumns:
    """A collector of batches that returns their records as columns."""

    __slots__ = (
        "_header_ends",
        "_header_keys",
        "_header_validity",
        "_header_values",
        "_keys",
        "_offsets",
        "_sequences",
        "_timestamps",
        "_values",
        "_wants",
    )

    def __init__(self, *, keys: bool, values: bool, headers: bool) -> None:
        self._wants = (keys, values, headers)
        self._begin()

    def _begin(self) -> None:
        self._offsets = array("q")
        self._timestamps = array("q")
        self._sequences = array("i")
        self._keys = _Fields()
        self._values = _Fields()
        self._header_ends = array("i", (0,))
        self._header_validity = _Bits()
        self._header_keys = _Fields()
        self._header_values = _Fields()

    @property
    def row_count(self) -> int:
        """Rows since the last `take`."""
        return len(self._offsets)

    @property
    def byte_count(self) -> int:
        """Bytes of their fields."""
        fields = (self._keys, self._values, self._header_keys, self._header_values)
        return sum(len(each.data) for each in fields)

    def add(
        self,
        records: Buffer,
        *,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        base_sequence: int,
        first_offset: int,
        end_offset: int,
    ) -> int:
        """Add a batch's uncompressed records from `first_offset` to below `end_offset`.

        `append_time` is None unless the broker set the timestamps.

        Returns:
            Number of added rows; -1 if the records are malformed.

        Raises:
            OverflowError: A column would exceed the range of int32; earlier rows are kept.
        """
        try:
            found = list(
                read_records(
                    bytes(records),
                    count=count,
                    base_offset=base_offset,
                    base_timestamp=base_timestamp,
                    append_time=append_time,
                )
            )
        except KafkaError:
            return -1
        wanted = [each for each in found if first_offset <= _wrapped(each.offset) < end_offset]
        if self.byte_count + len(records) > _MOST_BYTES:
            raise OverflowError("a column is full: take it first")
        for offset, timestamp, key, value, headers in wanted:
            self._offsets.append(_wrapped(offset))
            self._timestamps.append(_wrapped(timestamp))
            delta = offset - base_offset
            self._sequences.append(
                -1 if base_sequence < 0 else base_sequence + delta & _SEQUENCE_MASK
            )
            if self._wants[0]:
                self._keys.append(key)
            if self._wants[1]:
                self._values.append(value)
            if self._wants[2]:
                for header_key, header_value in headers:
                    self._header_keys.append(header_key.encode("utf-8", "surrogateescape"))
                    self._header_values.append(header_value)
                self._header_ends.append(len(self._header_keys.ends) - 1)
                self._header_validity.append(is_set=bool(headers))
        return len(wanted)

    def take(self) -> TakenColumns:
        """Return all rows (see `named`) and start again without rows."""
        keys, values, headers = self._wants
        taken = (
            self.row_count,
            self._offsets.tobytes(),
            self._timestamps.tobytes(),
            self._sequences.tobytes(),
            self._keys.taken() if keys else None,
            self._values.taken() if values else None,
            (
                self._header_ends.tobytes(),
                self._header_validity.packed(),
                self._header_validity.zero_count,
                self._header_keys.taken(),
                self._header_values.taken(),
            )
            if headers
            else None,
        )
        self._begin()
        return taken


def _wrapped(number: int) -> int:
    """Return a sum modulo 2**64, as in Java."""
    return (number - _LONG_MIN & (1 << 64) - 1) + _LONG_MIN


# Whether the C extension is used.
IS_QUICK: Final = _hot is not None

if _hot is not None:
    RecordColumns = _hot.RecordColumns  # type: ignore[assignment, misc]
