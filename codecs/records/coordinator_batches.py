"""Keys and values of many batches in one pass, for loading a coordinator's partition.

`__consumer_offsets` has mostly batches of one small record, a million in a partition. The flat pass
takes a third of the time of batch.py and record.py. It relies on the log's recovery for CRCs.

Source: KIP-98.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_records, read_batch_header
from wirebroker.codecs.records.layout import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    OFFSETS_AND_ATTRIBUTES,
    OVERHEAD_BYTES,
    TRANSACTIONAL_FLAG,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# Attributes that need the general reader.
_SPECIAL: Final = CODEC_MASK | CONTROL_FLAG | TRANSACTIONAL_FLAG

# The last byte of a marker's key.
_COMMIT: Final = b"\x01"

# Called with (producer id, is_commit).
OnEnd = Callable[[int, bool], None]

# Key, value, and a producer id if the record belongs to a transaction.
KeyValue = tuple[bytes, bytes | None] | tuple[bytes, bytes | None, int]


class KeyValueWalk:
    """A pass over the records of whole batches, in log order.

    Attributes:
        next_offset: The offset after the last completed batch, updated during the pass.
    """

    __slots__ = ("_data", "_from_offset", "_on_end", "next_offset")

    def __init__(self, data: bytes, from_offset: int, on_end: OnEnd) -> None:
        """Read `data` from `from_offset` on; call `on_end` when a transaction ends."""
        self._data = data
        self._from_offset = from_offset
        self._on_end = on_end
        self.next_offset = from_offset

    def __iter__(self) -> Iterator[KeyValue]:
        """Yield (key, value) or (key, value, producer id) of each data record that has a key.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD.
        """
        try:
            yield from self._walk()
        except IndexError:
            raise _corrupt() from None

    def _walk(self) -> Iterator[KeyValue]:  # noqa: C901, PLR0912, PLR0915 - flat
        data = self._data
        size = len(data)
        start = 0
        while size - start >= HEADER_BYTES:
            base_offset, length, attributes, last_offset_delta = OFFSETS_AND_ATTRIBUTES.unpack_from(
                data, start
            )
            end = start + length + OVERHEAD_BYTES
            if end > size:
                return
            if attributes & _SPECIAL or base_offset < self._from_offset:
                yield from self._walk_carefully(start)
            else:
                position = start + HEADER_BYTES
                if position > end:
                    raise _corrupt()
                while position < end:
                    byte = data[position]
                    position += 1
                    if byte < 0x80:
                        record_end = position + (byte >> 1)
                    else:
                        number, position = _long_varint(data, position, byte)
                        record_end = position + number
                    if record_end > end or record_end < position + 6:
                        raise _corrupt()
                    position += 1  # attributes
                    while data[position] >= 0x80:  # timestamp delta
                        position += 1
                    position += 1
                    while data[position] >= 0x80:  # offset delta
                        position += 1
                    byte = data[position + 1]
                    position += 2
                    if byte < 0x80:
                        number = byte >> 1 ^ -(byte & 1)
                    else:
                        number, position = _long_varint(data, position, byte)
                    if number >= 0:
                        key = data[position : position + number]
                        position += number
                        byte = data[position]
                        position += 1
                        if byte < 0x80:
                            number = byte >> 1 ^ -(byte & 1)
                        else:
                            number, position = _long_varint(data, position, byte)
                        value = data[position : position + number] if number >= 0 else None
                        if position + number > record_end:
                            raise _corrupt()
                        yield key, value
                    position = record_end
            self.next_offset = base_offset + last_offset_delta + 1
            start = end

    def _walk_carefully(self, start: int) -> Iterator[KeyValue]:
        header = read_batch_header(self._data, start)
        batch = memoryview(self._data)[start : start + header.size]
        for record in iterate_records(batch, header):
            key = record.key
            if key is None or record.offset < self._from_offset:
                continue
            if header.is_control:
                self._on_end(header.producer_id, key[-1:] == _COMMIT)
            elif header.is_transactional:
                yield key, record.value, header.producer_id
            else:
                yield key, record.value


def _long_varint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Read the rest of a longer zigzag varint."""
    value = first & 0x7F
    shift = 7
    while shift < 35:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position
        shift += 7
    raise _corrupt()


def _corrupt() -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, "a record does not fit into its batch")
