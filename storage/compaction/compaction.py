"""Log compaction, which keeps only the last record of each key.

    clean            dirty                     out of reach
    +-----+-----+----+------+-------+----+ ... +--------+
    |  segments rewritten in groups      |     | active |
    +-----+-----+----+------+-------+----+ ... +--------+
    0                first dirty offset  end_offset

The first pass maps the keys of the dirty part to their last offsets, until memory is used up; the
rest stays dirty. The second pass reads everything before that point and writes what remains of each
group of segments as one `.cleaned` segment.

Source: Kafka's Cleaner.
"""

from __future__ import annotations

import errno
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import batch_crc, iterate_records
from wirebroker.storage.compaction.filter import BatchFilter
from wirebroker.storage.compaction.segment import CleanedSegment
from wirebroker.storage.compaction.transactions import CleanedTransactions
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_recovery import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.compaction.filter import ActiveProducer
    from wirebroker.storage.compaction.map import OffsetMap
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction

_NO_END: Final = 1 << 63


class CompactionJob(NamedTuple):
    """The input of a compaction, as plain values for another process."""

    directory: str
    base_offsets: tuple[int, ...]  # including the active one; ascending
    first_dirty_offset: int
    end_offset: int  # the first segment out of reach
    producers: dict[int, ActiveProducer]
    now_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int


class CleanedGroup(NamedTuple):
    """A group of old segments, replaced by one `.cleaned` segment."""

    base_offsets: tuple[int, ...]
    bytes_before: int
    bytes_after: int


class Compaction:
    """One compaction of one log.

    Attributes:
        next_dirty_offset: The first dirty offset once all groups are swapped in.
    """

    __slots__ = ("_ends", "_files", "_job", "_map", "_on_read", "_segments", "next_dirty_offset")

    def __init__(
        self,
        job: CompactionJob,
        files: Files,
        offset_map: OffsetMap,
        *,
        on_read: Callable[[int], None] | None = None,
    ) -> None:
        """Prepare a compaction without reading anything.

        The job's closed segments must not change, but may be deleted. `offset_map` is empty;
        `on_read` is called with the size of each batch read.
        """
        self._job = job
        self._files = files
        self._map = offset_map
        self._on_read = on_read
        self._segments = [
            Segment(files, job.directory, base_offset, created_ms=0)
            for base_offset in job.base_offsets
        ]
        self._ends = dict(pairwise((*job.base_offsets, _NO_END)))
        self.next_dirty_offset = job.first_dirty_offset

    def run(self) -> Iterator[CleanedGroup]:
        """Compact the log and yield each group.

        Raises:
            KafkaError: A segment cannot be read.
            OSError: The disk failed, or a segment was deleted.
        """
        job = self._job
        self._build_map()
        self.next_dirty_offset = max(job.first_dirty_offset, self._map.latest_offset + 1)
        transactions = CleanedTransactions()
        batch_filter = BatchFilter(
            self._map,
            transactions,
            producers=job.producers,
            end_offset=job.end_offset,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
        )
        reached = [s for s in self._segments if s.base_offset < self.next_dirty_offset]
        for group in group_segments(reached, job):
            transactions.retained_aborts.clear()
            size = self._clean(group, batch_filter, transactions)
            for segment in group:
                segment.close_files()
            yield CleanedGroup(
                tuple(segment.base_offset for segment in group),
                sum(segment.size for segment in group),
                size,
            )
        assert batch_filter.last_records_count == len(self._map), (
            "the last record of each key was met"
        )

    def _clean(
        self, group: list[Segment], batch_filter: BatchFilter, transactions: CleanedTransactions
    ) -> int:
        job = self._job
        cleaned = CleanedSegment(
            self._files,
            job.directory,
            group[0].base_offset,
            index_interval_bytes=job.index_interval_bytes,
        )
        for segment in group:
            transactions.add_aborted(
                self._aborted_between(segment.base_offset, self._ends[segment.base_offset])
            )
            for header, batch in self._batches(segment, 0):
                filtered = batch_filter.filter(header, batch)
                if filtered is not None:
                    cleaned.append(filtered)
        cleaned.finish(transactions.retained_aborts, modified_ms=group[-1].modified_ms())
        return cleaned.size

    def _build_map(self) -> None:
        start, end = self._job.first_dirty_offset, self._job.end_offset
        transactions = CleanedTransactions()
        transactions.add_aborted(self._aborted_between(start, end))
        for segment in self._segments:
            if segment.base_offset >= end:
                return
            if self._ends[segment.base_offset] <= start:
                continue
            if not self._map_segment(segment, transactions):
                return
            self._map.latest_offset = min(self._ends[segment.base_offset], end) - 1

    def _map_segment(self, segment: Segment, transactions: CleanedTransactions) -> bool:
        """Return False if the map is full."""
        start = self._job.first_dirty_offset
        offset_map = self._map
        position = segment.offset_index.lookup(start).position
        for header, batch in self._batches(segment, position):
            if header.is_control:
                transactions.add_control_batch(header, batch)
            elif not transactions.add_data_batch(header):
                for record in iterate_records(batch, header):
                    if record.key is None or record.offset < start:
                        continue
                    if not offset_map.put(record.key, record.offset):
                        return False
            if header.last_offset >= start:
                offset_map.latest_offset = header.last_offset
        return True

    def _batches(self, segment: Segment, position: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        if not self._files.exists(segment.log.path):
            # A missing file would look empty.
            raise FileNotFoundError(errno.ENOENT, "the segment is missing", segment.log.path)
        on_read = self._on_read
        next_offset, end = segment.base_offset, self._ends[segment.base_offset]
        for batch_position, header, batch in segment.iterate_batches(position):
            if batch_crc(batch, 0, len(batch)) != header.crc:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{segment.log.path}: the batch at position {batch_position} has a wrong "
                    "CRC-32C",
                )
            if not next_offset <= header.base_offset <= header.last_offset < end:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{segment.log.path}: the batch at position {batch_position} has the offsets "
                    f"{header.base_offset} to {header.last_offset}, outside of {next_offset} to "
                    f"{end - 1}",
                )
            next_offset = header.last_offset + 1
            yield header, batch
            if on_read is not None:
                on_read(len(batch))

    def _aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        aborted: list[AbortedTransaction] = []
        for segment in self._segments:
            if self._ends[segment.base_offset] <= start:
                continue
            search = segment.transaction_index.collect(start, end)
            aborted += search.transactions
            if search.is_complete:
                break
        return aborted


def count_dirty_records(job: CompactionJob, files: Files) -> int:
    """Return the number of dirty records by batch headers; raises as Compaction.run."""
    count = 0
    for base_offset, end in pairwise(job.base_offsets):
        if base_offset < job.end_offset and end > job.first_dirty_offset:
            segment = Segment(files, job.directory, base_offset, created_ms=0)
            count += sum(header.record_count for _, header in segment.iterate_headers())
            segment.close_files()
    return count


def group_segments(segments: Iterable[Segment], job: CompactionJob) -> list[list[Segment]]:
    """Group neighbors so that each group, before compaction, fits into one segment."""
    following = list(segments)
    ends = [*(segment.base_offset for segment in following), job.end_offset][1:]
    groups: list[list[Segment]] = []
    size = offset_bytes = time_bytes = 0
    for segment, end in zip(following, ends, strict=True):
        index_size = segment.offset_index.entry_count * segment.offset_index.entry_bytes
        time_index_size = segment.time_index.entry_count * segment.time_index.entry_bytes
        fits = (
            bool(groups)
            and size + segment.size <= job.segment_bytes
            and offset_bytes + index_size <= job.segment_index_bytes
            and time_bytes + time_index_size <= job.segment_index_bytes
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        )
        if fits:
            groups[-1].append(segment)
            size += segment.size
            offset_bytes += index_size
            time_bytes += time_index_size
        else:
            groups.append([segment])
            size, offset_bytes, time_bytes = segment.size, index_size, time_index_size
    return groups
