"""The check of a segment after an unclean stop.

    0 ........ | ...... | ............ | ~~~~~~~~
      trusted    E        checked        cut
                          ^ recovery point

The check begins after the batch E of the last valid offset index entry below the recovery point, or
at the first batch. An entry is valid if the entries up to it ascend, both indexes agree with it,
and its batch exists.

Source: Kafka's LogSegment.recover, which reads the whole segment.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import BatchHeader, read_batch_header
from wirebroker.codecs.records.checksum import crc32c
from wirebroker.codecs.records.layout import (
    CRC_START,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    OVERHEAD_BYTES,
)
from wirebroker.storage.log.index.index_tail import IndexTail, empty_tail
from wirebroker.storage.log.index.offset_index import OFFSET_ENTRY
from wirebroker.storage.log.index.time_index import TIME_ENTRY
from wirebroker.storage.log.producers.producer_entry import BATCHES_KEPT
from wirebroker.storage.log.producers.producer_replay import SPECIAL_BATCH_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.storage.files import DataFile
    from wirebroker.storage.log.index.offset_index import OffsetIndex
    from wirebroker.storage.log.index.time_index import TimeIndex
    from wirebroker.storage.log.producers.producer_replay import Recent

MAX_RELATIVE_OFFSET = 2**31 - 1
# Larger reads only cost memory.
_CHUNK_BYTES = 1024 * 1024


class CheckStart(NamedTuple):
    """The start of the check, and the state before it."""

    position: int
    next_offset: int  # after the last record before it
    tail: IndexTail
    offset_entry_count: int  # before it
    time_entry_count: int


class SegmentRecovery(NamedTuple):
    """The valid part of a segment."""

    valid_bytes: int
    cut_bytes: int
    next_offset: int
    reason: str | None  # of the truncation


class CheckedLog(NamedTuple):
    """The result of a log file's check."""

    recovery: SegmentRecovery
    tail: IndexTail
    offset_entries: bytes  # of the checked batches
    time_entries: bytes


def from_the_first(base_offset: int) -> CheckStart:
    """Return a start at the first batch."""
    return CheckStart(0, base_offset, empty_tail(base_offset), 0, 0)


def find_start(
    log: DataFile, offset_index: OffsetIndex, time_index: TimeIndex, recovery_point: int
) -> CheckStart:
    """Return the start if everything below `recovery_point` was flushed."""
    base_offset = offset_index.base_offset
    beginning = from_the_first(base_offset)
    offset_count, last_offset, position = offset_index.ascending_below(recovery_point)
    if not offset_count or position + HEADER_BYTES > log.size():
        return beginning
    time_count, timestamp, timestamp_offset = time_index.ascending_below(last_offset + 1)
    try:
        header = read_batch_header(log.read_at(position, HEADER_BYTES))
    except KafkaError:
        return beginning
    end = position + header.size
    if (
        header.last_offset != last_offset
        or header.max_timestamp > timestamp
        or end > log.size()
        or not base_offset <= header.base_offset
    ):
        return beginning
    tail = IndexTail(timestamp, timestamp_offset, timestamp, header.size)
    return CheckStart(end, last_offset + 1, tail, offset_count, time_count)


# Flat, because it runs for each batch (benchmarks/paths/recovery.py).
def check_log(
    log: DataFile,
    on_batch: Callable[[BatchHeader, memoryview], None],
    start: CheckStart,
    *,
    base_offset: int,
    index_interval_bytes: int,
    recent: Recent | None,
) -> CheckedLog:
    """Check a log file up to the first bad batch; changes nothing.

    Length, magic, CRC-32C and the order of offsets are checked. The rule of index_tail.py is
    repeated here. `on_batch` is called with the header and bytes of each good batch; a KafkaError
    makes it a bad one. With `recent` it is called only for transactional and control batches and at
    each change of the leader epoch; the latest others are collected there.

    Raises:
        KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT: data that can neither be checked nor truncated.
    """
    next_offset = start.next_offset
    max_timestamp, timestamp_offset, indexed_timestamp, bytes_since_entry = start.tail
    offset_entries, time_entries = bytearray(), bytearray()
    reason: str | None = None
    last_epoch: int | None = None
    last_possible = base_offset + MAX_RELATIVE_OFFSET
    position, end = start.position, log.size()
    try:
        for fields, batch in _good_batches(log, position, end):
            first_offset = fields[0]
            last_offset = first_offset + fields[6]
            if first_offset < next_offset or fields[6] < 0:
                raise _corrupt(f"{first_offset} to {last_offset} are not from {next_offset}")
            if last_offset > last_possible:
                raise _corrupt(f"offset {last_offset} is too far from the base offset")
            if recent is None or fields[2] != last_epoch or fields[5] & SPECIAL_BATCH_FLAGS:
                last_epoch = fields[2]
                on_batch(BatchHeader._make(fields), batch)
            elif fields[9] >= 0:
                recent_batches = recent.get(fields[9])
                if recent_batches is None:
                    recent_batches = recent[fields[9]] = deque(maxlen=BATCHES_KEPT)
                recent_batches.append(fields)
            if fields[8] > max_timestamp:
                max_timestamp, timestamp_offset = fields[8], last_offset
            if bytes_since_entry > index_interval_bytes:
                offset_entries += OFFSET_ENTRY.pack(last_offset - base_offset, position)
                if max_timestamp > indexed_timestamp:
                    time_entries += TIME_ENTRY.pack(max_timestamp, timestamp_offset - base_offset)
                    indexed_timestamp = max_timestamp
                bytes_since_entry = 0
            bytes_since_entry += len(batch)
            position += len(batch)
            next_offset = last_offset + 1
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            raise
        reason = f"at position {position}: {error}"
    recovery = SegmentRecovery(position, end - position, next_offset, reason)
    tail = IndexTail(max_timestamp, timestamp_offset, indexed_timestamp, bytes_since_entry)
    return CheckedLog(recovery, tail, bytes(offset_entries), bytes(time_entries))


def _good_batches(
    log: DataFile, position: int, end: int
) -> Iterator[tuple[tuple[int, ...], memoryview]]:
    unpack = HEADER.unpack_from
    chunk = memoryview(b"")
    at = 0
    while position < end:
        if at + HEADER_BYTES > len(chunk):
            chunk = memoryview(log.read_at(position, min(_CHUNK_BYTES, end - position)))
            at = 0
            if len(chunk) < HEADER_BYTES:
                read_batch_header(chunk)  # raises the exact error
        fields = unpack(chunk, at)
        size = fields[1] + OVERHEAD_BYTES
        if fields[3] != MAGIC or size < HEADER_BYTES or size > end - position:
            read_batch_header(chunk, at)
            raise _corrupt(f"the batch claims {size} bytes where {end - position} are left")
        if at + size > len(chunk):
            chunk = memoryview(log.read_at(position, min(max(size, _CHUNK_BYTES), end - position)))
            at = 0
        batch = chunk[at : at + size]
        if crc32c(batch[CRC_START:]) != fields[4]:
            raise _corrupt("the CRC-32C does not match")
        yield fields, batch
        position += size
        at += size


def _corrupt(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, sentence)
