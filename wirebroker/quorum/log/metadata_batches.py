"""Encodes and decodes the record batches of the metadata log and of snapshots.

A large change is split into batches within a metadata transaction (KIP-868): it counts as a whole
or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import (
    MetadataRecord,
    RecordType,
    decode_metadata_record,
    encode_metadata_record,
    metadata_record,
)
from wirebroker.codecs.records.batch import (
    BatchHeader,
    batch_crc,
    build_batch,
    iterate_records,
    read_batch_header,
)
from wirebroker.codecs.records.control import encode_control_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.records.control import ControlRecord

# Built in 2 ms.
BATCH_RECORDS = 512
_LENGTH_END: Final = 12


class EncodedBatches(NamedTuple):
    """Whole batches, ready to append."""

    buffers: list[bytearray]
    headers: list[BatchHeader]

    @property
    def base_offset(self) -> int:
        """Return the offset of the first record."""
        return self.headers[0].base_offset

    @property
    def end_offset(self) -> int:
        """Return the offset after the last record."""
        return self.headers[-1].last_offset + 1


class BatchBuilder:
    """Collects records into batches with consecutive offsets."""

    __slots__ = ("_leader_epoch", "_timestamp_ms", "_values", "batches", "next_offset")

    def __init__(self, *, base_offset: int, leader_epoch: int, timestamp_ms: int) -> None:
        self._leader_epoch = leader_epoch
        self._timestamp_ms = timestamp_ms
        self._values: list[tuple[bytes | None, bytes | None, tuple[()]]] = []
        self.next_offset = base_offset
        self.batches = EncodedBatches([], [])

    def add(self, record: MetadataRecord) -> None:
        """Add a record; a full batch is built immediately."""
        self._values.append((None, encode_metadata_record(record), ()))
        if len(self._values) >= BATCH_RECORDS:
            self.finish_batch()

    def add_control(self, records: Sequence[ControlRecord]) -> None:
        """Add a batch of control records."""
        self.finish_batch()
        self._values = [(*encode_control_record(record), ()) for record in records]
        self.finish_batch(is_control=True)

    def finish_batch(self, *, is_control: bool = False) -> None:
        """Build a batch of the remaining records."""
        if not self._values:
            return
        batch = build_batch(
            self._values,
            base_offset=self.next_offset,
            leader_epoch=self._leader_epoch,
            timestamp_ms=self._timestamp_ms,
            is_control=is_control,
        )
        self.next_offset += len(self._values)
        self._values = []
        self.batches.buffers.append(batch)
        self.batches.headers.append(read_batch_header(batch))


def framed(records: list[MetadataRecord]) -> list[MetadataRecord]:
    """Return the records of one change, in a transaction if they need several batches."""
    if len(records) <= BATCH_RECORDS:
        return records
    return [
        metadata_record(RecordType.BEGIN_TRANSACTION),
        *records,
        metadata_record(RecordType.END_TRANSACTION),
    ]


def decode_batch(
    batch: Buffer, header: BatchHeader, *, from_offset: int = 0
) -> Iterator[MetadataRecord]:
    """Yield the metadata records of a data batch.

    Raises:
        KafkaError: UNSUPPORTED_VERSION for unknown records; CORRUPT_MESSAGE or INVALID_RECORD for
            an unreadable batch.
        MalformedFrameError: A value is no metadata record.
    """
    for record in iterate_records(batch, header):
        if record.offset >= from_offset:
            yield decode_metadata_record(record.value or b"")


class FetchedBatch(NamedTuple):
    """A whole batch and its header."""

    header: BatchHeader
    batch: bytes | bytearray | memoryview


def checked_batches(records: memoryview) -> list[FetchedBatch]:
    """Return the whole batches of a Fetch response, without a partial one at its end.

    Raises:
        KafkaError: CORRUPT_MESSAGE: a batch is malformed, or its checksum differs.
    """
    batches: list[FetchedBatch] = []
    position, end = 0, len(records)
    while end - position >= _LENGTH_END:
        size = int.from_bytes(records[position + 8 : position + 12], signed=True) + _LENGTH_END
        if size > end - position:
            break
        header = read_batch_header(records, position)
        if batch_crc(records, position, header.size) != header.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the CRC-32C does not match at offset {header.base_offset}",
            )
        batches.append(FetchedBatch(header, records[position : position + size]))
        position += size
    return batches
