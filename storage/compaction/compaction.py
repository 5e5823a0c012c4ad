"""Compaction: of the records with one key only the last one stays.

    clean            dirty                     out of reach
    +-----+-----+----+------+-------+----+ ... +--------+
    |  segments rewritten in groups      |     | active |
    +-----+-----+----+------+-------+----+ ... +--------+
    0                first dirty offset  end_offset

Two passes. The first reads the dirty part and notes the last offset of every key (as many as memory
allows; the rest stays dirty). The second reads everything up to there, group of segments by group,
and writes what is left of each group as one `.cleaned` segment. The old segments are only read: the
swap is its caller's (segment_swap.py), who may run this in another process and end it at any time.

Source: Kafka's Cleaner; which part is dirty says range.py.
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
    """What to compact, taken from a log at one moment. Plain values, fit for another process."""

    directory: str
    base_offsets: tuple[int, ...]  # of all segments, the active one included; rising
    first_dirty_offset: int
    end_offset: int  # the base offset of the first segment that is out of reach
    producers: dict[int, ActiveProducer]
    now_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int


class CleanedGroup(NamedTuple):
    """Old segments and what they have become: a `.cleaned` segment at the first one's offset."""

    base_offsets: tuple[int, ...]
    bytes_before: int
    bytes_after: int


class Compaction:
    """One compaction of one log.

    Attributes:
        next_dirty_offset: Where the next one begins, once all groups are swapped in.
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
        """Take over a job; nothing is read yet.

        Args:
            job: Its closed segments stay as they are, or are deleted, while this goes on.
            files: Where they lie.
            offset_map: Empty.
            on_read: Called with the size of each batch that was read.
        """
        self._job = job
        self._files = files
        self._map = offset_map
        self._on_read = on_read
        self._segments = [
            Segment(files, job.directory, base_offset, created_ms=0)
            for base_offset in job.base_offsets
        ]
        # Base offset of each segment -> that of the one behind; the active one has no end.
        self._ends = dict(pairwise((*job.base_offsets, _NO_END)))
        self.next_dirty_offset = job.first_dirty_offset

    def run(self) -> Iterator[CleanedGroup]:
        """Do it all, group by group.

        Raises:
            KafkaError: What is in the segments cannot be read; nothing may be done about it.
            OSError: The disk failed, or the segments are gone.
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
            transactions.kept_aborts.clear()
            size = self._clean(group, batch_filter, transactions)
            for segment in group:
                segment.close_files()
            yield CleanedGroup(
                tuple(segment.base_offset for segment in group),
                sum(segment.size for segment in group),
                size,
            )

    def _clean(
        self, group: list[Segment], batch_filter: BatchFilter, transactions: CleanedTransactions
    ) -> int:
        """Write what is left of a group; return its size in bytes."""
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
                left = batch_filter.filter(header, batch)
                if left is not None:
                    cleaned.append(left)
        cleaned.finish(transactions.kept_aborts, modified_ms=group[-1].modified_ms())
        return cleaned.size

    def _build_map(self) -> None:
        """Note the last offset of every key from the first dirty offset on, while there is room."""
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
        """Note the keys of one segment; False if the map is full."""
        start = self._job.first_dirty_offset
        offset_map = self._map
        position = segment.offset_index.lookup(start).position
        for header, batch in self._batches(segment, position):
            if header.is_control:
                transactions.meet_control(header, batch)
            elif not transactions.meet_data(header):
                for record in iterate_records(batch, header):
                    if record.key is None or record.offset < start:
                        continue
                    if not offset_map.put(record.key, record.offset):
                        return False
            if header.last_offset >= start:
                offset_map.latest_offset = header.last_offset
        return True

    def _batches(self, segment: Segment, position: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Walk whole batches whose checksums are right."""
        if not self._files.exists(segment.log.path):
            # It would pass for one without batches.
            raise FileNotFoundError(errno.ENOENT, "the segment is gone", segment.log.path)
        on_read = self._on_read
        for place, header, batch in segment.iterate_batches(position):
            if batch_crc(batch, 0, len(batch)) != header.crc:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{segment.log.path}: the batch at position {place} has a wrong CRC-32C",
                )
            yield header, batch
            if on_read is not None:
                on_read(len(batch))

    def _aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that batches in [start, end) may belong to."""
        found: list[AbortedTransaction] = []
        for segment in self._segments:
            if self._ends[segment.base_offset] <= start:
                continue
            search = segment.transaction_index.collect(start, end)
            found += search.transactions
            if search.is_complete:
                break
        return found


def count_dirty_records(job: CompactionJob, files: Files) -> int:
    """Return how many records the dirty part has, by the headers of its batches.

    Raises:
        KafkaError, OSError: As Compaction.run.
    """
    count = 0
    for base_offset, end in pairwise(job.base_offsets):
        if base_offset < job.end_offset and end > job.first_dirty_offset:
            segment = Segment(files, job.directory, base_offset, created_ms=0)
            count += sum(header.record_count for _, header in segment.iterate_headers())
            segment.close_files()
    return count


def group_segments(segments: Iterable[Segment], job: CompactionJob) -> list[list[Segment]]:
    """Say which neighbours become one segment: their sums stay within what one segment may have.

    The sizes are those from before, so every compaction brings segments closer together.
    """
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
