"""Reads of the log for share fetches: file slices, and the record batches in them.

Source: Kafka's ReplicaManagerLogReader, ShareFetchUtils.maybeSliceFetchRecords.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - compiled tuples look for it
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.records.batch import iterate_records, read_batch_header
from wirebroker.codecs.records.control import ControlType, control_type
from wirebroker.codecs.records.layout import HEADER_BYTES, OVERHEAD_BYTES
from wirebroker.coordinator.share_partitions.acquisition import RecordBatch
from wirebroker.storage.files import FileSlice
from wirebroker.storage.log.read import aborted_in

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.coordinator.share_partitions.acquisition import AcquiredRecords
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.files import DataFile
    from wirebroker.storage.log.read import LogRead

# Covers several small batches, or the header of a large one.
_CHUNK_BYTES: Final = 4096
# Batches before other work may run.
_STEP: Final = 100
# A transaction marker is much smaller.
_MOST_MARKER_BYTES: Final = 4096


class ShareRead(NamedTuple):
    """The visible records from an offset on, as far as the wanted bytes allow."""

    slice: FileSlice | None
    # (producer id, first offset) of aborted transactions, under read_committed.
    aborted: Sequence[tuple[int, int]]
    # Whether newer segments have visible records, so that waiting adds none to this read.
    is_of_old_segment: bool

    @property
    def size(self) -> int:
        """Bytes of records."""
        return 0 if self.slice is None else self.slice.length


def read_log(
    partition: Partition,
    offset: int,
    max_bytes: int,
    *,
    min_one: bool,
    may_block: bool,
    is_read_committed: bool,
) -> ShareRead:
    """Read a partition that this node leads.

    Raises:
        KafkaError: From check_leader; OFFSET_OUT_OF_RANGE.
        ColdPagesError: The disk is needed, and `may_block` is False.
        OSError: The disk failed.
    """
    partition.check_leader()
    log = partition.log
    up_to_offset = log.last_stable_offset if is_read_committed else log.high_watermark
    read: LogRead = log.read(
        offset, max_bytes, up_to_offset=up_to_offset, min_one=min_one, may_block=may_block
    )
    found = read.slice
    if found is None:
        return ShareRead(None, (), is_of_old_segment=False)
    aborted = [entry[:2] for entry in aborted_in(log, read)] if is_read_committed else ()
    newest = log.segments[log.segments.floor_index(up_to_offset)].log
    return ShareRead(found, aborted, is_of_old_segment=found.file is not newest)


def batches_in(
    found: FileSlice, *, beyond_offset: int, may_block: bool, finds_aborted: bool
) -> Steps[list[RecordBatch]]:
    """Return the whole batches of a slice, up to the first one that begins after an offset.

    Raises:
        KafkaError: CORRUPT_MESSAGE.
        ColdPagesError: The disk is needed, and `may_block` is False.
        OSError: The disk failed.
    """
    file, position, length = found
    end = position + length
    batches: list[RecordBatch] = []
    chunk: bytes | bytearray = b""
    chunk_position = position
    while position + HEADER_BYTES <= end:
        start = position - chunk_position
        if start + HEADER_BYTES > len(chunk):
            chunk = _chunk(file, position, min(_CHUNK_BYTES, end - position), may_block=may_block)
            chunk_position, start = position, 0
        header = read_batch_header(chunk, start)
        size = header.length + OVERHEAD_BYTES
        if position + size > end:
            break
        is_abort = finds_aborted and header.is_control and _is_abort(file, position, header)
        batches.append(
            RecordBatch(
                header.base_offset,
                header.base_offset + header.last_offset_delta,
                size,
                header.producer_id,
                header.is_transactional,
                is_abort,
            )
        )
        if header.base_offset > beyond_offset:
            break
        position += size
        if len(batches) % _STEP == 0:
            yield
    return batches


def _chunk(file: DataFile, position: int, length: int, *, may_block: bool) -> bytes | bytearray:
    if may_block:
        return file.read_at(position, length)
    return file.read_now(position, length, least=min(length, HEADER_BYTES))


def _is_abort(file: DataFile, position: int, header: BatchHeader) -> bool:
    if header.size > _MOST_MARKER_BYTES:
        return False
    batch = file.read_at(position, header.size)
    for record in iterate_records(batch, header, max_bytes=_MOST_MARKER_BYTES):
        return control_type(record.key) is ControlType.ABORT
    return False


def part_with(
    found: FileSlice, batches: Sequence[RecordBatch], acquired: Sequence[AcquiredRecords]
) -> FileSlice:
    """Return the part of a slice that holds acquired records."""
    first_offset, last_offset = acquired[0].first_offset, acquired[-1].last_offset
    start, length = 0, batches[0].size
    for batch in batches[1:]:
        if batch.base_offset <= first_offset:
            start += length
            length = batch.size
        elif batch.base_offset > last_offset:
            break
        else:
            length += batch.size
    return FileSlice(found.file, found.position + start, length)
