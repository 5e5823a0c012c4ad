"""Record batches of magic 2; magic 0 and 1 are refused.

Source: KIP-98; class DefaultRecordBatch.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.checksum import crc32c
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress, decompress
from wirebroker.codecs.records.decompression_limits import MAX_DECOMPRESSED_BYTES
from wirebroker.codecs.records.layout import (
    BASE_OFFSET,
    CODEC_MASK,
    CONTROL_FLAG,
    CRC,
    CRC_AT,
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LEADER_EPOCH,
    LEADER_EPOCH_AT,
    LENGTH,
    LENGTH_AND_MAGIC,
    LENGTH_AT,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    OVERHEAD_BYTES,
    TRANSACTIONAL_FLAG,
)
from wirebroker.codecs.records.record import (
    MOST_HEADERS,
    Headers,
    Record,
    encode_record,
    read_records,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.codecs.primitives import Buffer

# Key, value and headers; offset and timestamp follow from the batch.
BareRecord: TypeAlias = "tuple[bytes | None, bytes | None, Headers]"

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1

# A magic 0 record without key and value.
_SMALLEST_LENGTH: Final = 14


class BatchHeader(NamedTuple):
    """The 61 bytes before a batch's records."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        """Offset of the last record, including records that compaction removed."""
        return self.base_offset + self.last_offset_delta

    @property
    def size(self) -> int:
        """Size of the whole batch."""
        return self.length + OVERHEAD_BYTES

    @property
    def codec(self) -> Codec:
        """Compression of the records.

        Raises:
            KafkaError: CORRUPT_MESSAGE: the number is unknown.
        """
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"unknown compression type {number}")
        return Codec(number)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def uses_log_append_time(self) -> bool:
        """Whether max_timestamp, set by the broker, is every record's timestamp."""
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, which wraps after 2**31 - 1; -1: none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def read_batch_header(view: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at a position; the view may end before the records do.

    Raises:
        KafkaError: CORRUPT_MESSAGE if the header is cut off, the length too small or the magic
            unknown; UNSUPPORTED_FOR_MESSAGE_FORMAT for magic 0 and 1.
    """
    try:
        fields = HEADER.unpack_from(view, position)
        # Faster than BatchHeader._make.
        header = tuple.__new__(BatchHeader, fields)  # pyright: ignore[reportUnknownMemberType]
    except struct_error:
        raise _explain_header(view, position) from None
    if header.magic != MAGIC or header.length < HEADER_BYTES - OVERHEAD_BYTES:
        raise _explain_header(view, position)
    return header


def _explain_header(view: Buffer, position: int) -> KafkaError:
    remaining = len(view) - position
    if remaining < LENGTH_AND_MAGIC.size:
        return _corrupt(f"a batch header is cut off after {remaining} bytes")
    length, magic = LENGTH_AND_MAGIC.unpack_from(view, position)
    if length < _SMALLEST_LENGTH:
        return _corrupt(f"a batch has the length {length}")
    if magic in {0, 1}:
        return KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"message format {magic} is not supported; use format 2 (Kafka 0.11 or later)",
        )
    if magic != MAGIC:
        return _corrupt(f"a batch has the magic {magic}")
    return _corrupt(f"a batch of length {length} in {remaining} bytes is too short for its header")


def _corrupt(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, sentence)


def iterate_batches(view: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Iterate over the batches of a view as (position, header).

    Raises:
        KafkaError: As read_batch_header, and CORRUPT_MESSAGE for a batch that ends beyond the view.
    """
    position = 0
    end = len(view)
    while position < end:
        header = read_batch_header(view, position)
        size = header.length + OVERHEAD_BYTES
        if size > end - position:
            raise _corrupt(f"a batch of {size} bytes has only {end - position} left")
        yield position, header
        position += size


def whole_batches(view: Buffer) -> int:
    """Return how many bytes at the start of a view are whole batches.

    Raises:
        KafkaError: As read_batch_header.
    """
    end = 0
    while len(view) - end >= HEADER_BYTES:
        size = read_batch_header(view, end).size
        if size > len(view) - end:
            break
        end += size
    return end


def batch_crc(view: memoryview, position: int, size: int) -> int:
    """Compute the CRC of the batch at a position."""
    return crc32c(view[position + CRC_START : position + size])


def iterate_records(
    batch: Buffer, header: BatchHeader, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[Record]:
    """Iterate over the records of one batch, decompressed if necessary.

    Keys and values are copies, so the buffer may be reused between records.

    Raises:
        KafkaError: INVALID_RECORD or CORRUPT_MESSAGE, at the first error.
    """
    return payload_records(batch_payload(batch, header, max_bytes=max_bytes), header)


def batch_payload(
    batch: Buffer, header: BatchHeader, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Return the records of one batch as bytes, decompressed if necessary.

    Raises:
        KafkaError: CORRUPT_MESSAGE; TooLargeError.
    """
    data = memoryview(batch)[HEADER_BYTES : header.size]
    if len(data) != header.size - HEADER_BYTES:
        raise _corrupt(f"a batch of {header.size} bytes has only {len(data) + HEADER_BYTES}")
    codec = header.codec
    return bytes(data) if codec is Codec.NONE else decompress(codec, data, max_bytes=max_bytes)


def payload_records(
    payload: bytes, header: BatchHeader, *, most_headers: int = MOST_HEADERS
) -> Iterator[Record]:
    """Iterate over the records of a batch's payload; see `iterate_records` and `read_records`."""
    return read_records(
        payload,
        count=header.record_count,
        base_offset=header.base_offset,
        base_timestamp=header.base_timestamp,
        append_time=header.max_timestamp if header.uses_log_append_time else None,
        most_headers=most_headers,
    )


def build_batch(
    records: Sequence[Record | BareRecord],
    *,
    timestamp_ms: int = NO_TIMESTAMP,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    log_append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """Build a batch, with its CRC, as Java's builder does.

    A Record keeps its timestamp and its offset, which must rise; a BareRecord gets `timestamp_ms`
    and the next offset. `base_offset` is the first record's, unless compaction removed it. `level`
    is None for Kafka's default. `log_append_time_ms` becomes the timestamp of all records.
    """
    payload, record_span = _encode_records(records, base_offset, timestamp_ms)
    if codec is not Codec.NONE:
        payload = compress(codec, payload, level)
    attributes = (
        codec
        | (LOG_APPEND_TIME_FLAG if log_append_time_ms is not None else 0)
        | (TRANSACTIONAL_FLAG if is_transactional else 0)
        | (CONTROL_FLAG if is_control else 0)
    )
    batch = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        HEADER_BYTES - OVERHEAD_BYTES + len(payload),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        record_span.last_offset_delta,
        record_span.base_timestamp,
        record_span.max_timestamp if log_append_time_ms is None else log_append_time_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch += payload
    write_crc(batch, 0)
    return batch


class _RecordSpan(NamedTuple):
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int


def _encode_records(
    records: Sequence[Record | BareRecord], base_offset: int, timestamp_ms: int
) -> tuple[bytes, _RecordSpan]:
    assert records, "a batch has at least one record"
    first = records[0]
    base_timestamp = first.timestamp if isinstance(first, Record) else timestamp_ms
    max_timestamp = NO_TIMESTAMP
    offset_delta = -1
    pieces: list[bytes] = []
    for record in records:
        if isinstance(record, Record):
            assert record.offset - base_offset > offset_delta, "offsets do not rise"
            offset_delta = record.offset - base_offset
            _, timestamp, key, value, headers = record
        else:
            offset_delta += 1
            timestamp = timestamp_ms
            key, value, headers = record
        max_timestamp = max(max_timestamp, timestamp)
        timestamp_delta = timestamp - base_timestamp
        pieces.append(
            encode_record(
                key, value, headers, offset_delta=offset_delta, timestamp_delta=timestamp_delta
            )
        )
    return b"".join(pieces), _RecordSpan(offset_delta, base_timestamp, max_timestamp)


def write_crc(buffer: bytearray | memoryview, position: int) -> None:
    """Store the CRC of the batch at a position."""
    (length,) = LENGTH.unpack_from(buffer, position + LENGTH_AT)
    size = length + OVERHEAD_BYTES
    with memoryview(buffer) as view:
        crc = crc32c(view[position + CRC_START : position + size])
    CRC.pack_into(buffer, position + CRC_AT, crc)


def set_base_offset_and_epoch(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Write the leader's fields, in place; the CRC does not cover them."""
    BASE_OFFSET.pack_into(buffer, position, base_offset)
    LEADER_EPOCH.pack_into(buffer, position + LEADER_EPOCH_AT, leader_epoch)
