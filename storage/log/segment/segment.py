"""One segment of a log: a file of record batches and its indexes.

An append has two steps, so that a large one can run in a thread and a failed one changes nothing.
No other write may happen between the two.

Source: Kafka's LogSegment and FileRecords; format in storage/README.md.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from wirebroker.codecs.records.layout import OVERHEAD_BYTES
from wirebroker.storage.files import FileSlice
from wirebroker.storage.log.index.index_tail import IndexTail, empty_tail, index_batches
from wirebroker.storage.log.index.offset_index import OFFSET_ENTRY, OffsetIndex
from wirebroker.storage.log.index.time_index import TIME_ENTRY, TimeIndex
from wirebroker.storage.log.segment.batch_positions import BatchPositions
from wirebroker.storage.log.segment.batch_scan import scan_batches, scan_headers
from wirebroker.storage.log.segment.segment_files import (
    SEGMENT_SUFFIXES,
    SegmentFiles,
    segment_path,
)
from wirebroker.storage.log.segment.segment_recovery import (
    check_log,
    find_start,
    from_the_first,
)
from wirebroker.storage.log.segment.segment_write import SegmentWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.files import Buffer, Files
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction
    from wirebroker.storage.log.producers.producer_replay import Recent
    from wirebroker.storage.log.segment.segment_recovery import CheckStart, SegmentRecovery


class Segment(SegmentFiles):
    """A segment and its indexes.

    Attributes:
        is_searched: Whether a search by time found a record in it lately, so that its indexes are
            probably in the page cache.
        created_ms: The time that rolling counts from; the owner resets it when a truncation empties
            the segment.
    """

    __slots__ = (
        "_first_batch_timestamp",
        "_is_new",
        "_max_timestamp",
        "_memo",
        "_size",
        "_tail",
        "created_ms",
        "is_searched",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, *, created_ms: int) -> None:
        super().__init__(files, directory, base_offset)
        self.created_ms = created_ms
        self._size = -1  # unknown, like None below
        self._tail: IndexTail | None = None
        self._max_timestamp: int | None = None
        self._first_batch_timestamp: int | None = None
        self._memo = BatchPositions()
        self._is_new = False
        self.is_searched = False

    def create(self, settings: TopicSettings | None = None) -> None:
        """Create the empty log file; remove anything left under the segment's file names.

        With `preallocate` the file has a full segment's length until the segment is rolled or
        closed; after a crash, recovery truncates it.
        """
        for suffix in SEGMENT_SUFFIXES:
            self._files.remove_obstacle(segment_path(self._directory, self.base_offset, suffix))
        if settings is not None and settings.preallocate:
            self.log.reserve(settings.segment_bytes)
        else:
            self.log.create()
        self._is_new = True

    @property
    def size(self) -> int:
        """Bytes of batches."""
        if self._size < 0:
            self._size = self.log.size()
        return self._size

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of a record; -1 if there is none."""
        return (self._tail or self._load_tail()).max_timestamp

    @property
    def known_max_timestamp(self) -> int | None:
        """The largest timestamp if that needs no file, or None; safe in a thread."""
        tail = self._tail
        return self._max_timestamp if tail is None else tail.max_timestamp

    def note_max_timestamp(self, timestamp: int) -> None:
        """Store the result of a search in `detached_closed`."""
        self._max_timestamp = timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch with that timestamp."""
        return (self._tail or self._load_tail()).offset_of_max_timestamp

    @property
    def first_batch_timestamp(self) -> int | None:
        """The largest timestamp in the first batch, or None."""
        if self._first_batch_timestamp is None and self.size:
            _, header = next(self.iterate_headers())
            self._first_batch_timestamp = header.max_timestamp
        return self._first_batch_timestamp

    def largest_timestamp(self) -> int:
        """Return the largest timestamp, or else the file's, for retention."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """Return the log file's modification time."""
        return self._files.modified_ms(self.log.path)

    def append(
        self,
        buffer: Buffer | Sequence[Buffer],
        batches: Sequence[BatchHeader],
        *,
        index_interval_bytes: int,
    ) -> None:
        """Write and commit batches."""
        self.commit(self.write(buffer, batches, index_interval_bytes=index_interval_bytes))

    def write(
        self,
        buffer: Buffer | Sequence[Buffer],
        batches: Sequence[BatchHeader],
        *,
        index_interval_bytes: int,
        aborted: Sequence[AbortedTransaction] = (),
    ) -> SegmentWrite:
        """Write batches and their index entries to the files, invisible before `commit`.

        May run in a thread. `buffer` has whole batches, with their final offsets, `batches` their
        headers; `aborted` are the transactions that abort markers among them end.

        Raises:
            OSError: Nothing was written; EIO if the files could not be truncated again.
        """
        position = self.size
        tail, end_position, offset_entries, time_entries = index_batches(
            self._tail or self._load_tail(),
            batches,
            position=position,
            base_offset=self.base_offset,
            index_interval_bytes=index_interval_bytes,
        )
        self.log.write_at(position, buffer)
        if offset_entries or aborted:
            try:
                self.offset_index.write_entries(offset_entries)
                self.time_index.write_entries(time_entries)
                if aborted:
                    self.transaction_index.write_entries(aborted)
            except OSError as error:
                self._undo_write(position, error)
                raise
        return SegmentWrite(
            position,
            end_position,
            batches[0],
            tail,
            len(offset_entries) // OFFSET_ENTRY.size,
            len(time_entries) // TIME_ENTRY.size,
            len(aborted),
        )

    def commit(self, write: SegmentWrite) -> None:
        """Make the result of `write` visible."""
        assert write.position == self._size, "writes are committed in order, each once"
        assert write.end_position == self.log.size(), "the headers are those of the buffer"
        self._size = write.end_position
        self._tail = write.tail
        if write.offset_entry_count:
            self.offset_index.commit_entries(write.offset_entry_count)
            self.time_index.commit_entries(write.time_entry_count)
        if write.aborted_count:
            self.transaction_index.commit_entries(write.aborted_count)
        first = write.first_batch
        self._memo.remember(first.base_offset, write.position, first.length + OVERHEAD_BYTES)

    def position_for_offset(
        self, offset: int, *, may_block: bool = True
    ) -> tuple[int, BatchHeader] | None:
        """Return position and header of the first batch that ends at or after `offset`, or None.

        Raises:
            KafkaError: CORRUPT_MESSAGE: the file is damaged.
            ColdPagesError: The disk is needed, but may_block is False.
        """
        memo = self._memo.get(offset)
        start = memo[0] if memo else self.offset_index.lookup(offset).position
        for position, header in scan_headers(self.log, start, self.size, may_block=may_block):
            last_offset = header.base_offset + header.last_offset_delta
            if last_offset >= offset:
                size = header.length + OVERHEAD_BYTES
                if position + size < self.size:  # for a sequential reader
                    self._memo.remember(last_offset + 1, position + size, 0)
                self._memo.remember(offset, position, size)
                return position, header
        return None

    def read_slice(
        self,
        offset: int,
        max_bytes: int,
        *,
        end_position: int,
        min_one: bool,
        may_block: bool = True,
    ) -> FileSlice | None:
        """Return the file range for a Fetch; see ReadableLog.read.

        The last batch may be incomplete, as in Kafka. Visible batches end at `end_position`.

        Returns:
            The slice, of length 0 if nothing is visible or fits; None if the segment ends before
            `offset`.
        """
        memo = self._memo.get(offset)
        if memo and memo[1]:
            position, size = memo
        else:
            first_batch = self.position_for_offset(offset, may_block=may_block)
            if first_batch is None:
                return None
            position, size = first_batch[0], first_batch[1].length + OVERHEAD_BYTES
        if min_one and max_bytes < size:
            max_bytes = size
        return FileSlice(self.log, position, max(0, min(max_bytes, end_position - position)))

    def iterate_headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """See scan_headers."""
        return scan_headers(self.log, position, self.size)

    def iterate_batches(self, position: int = 0) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """See scan_batches."""
        return scan_batches(self.log, position, self.size)

    def detached(self) -> Segment:
        """Return a copy for searches in a thread, which shares only the files.

        It contains only the records that are committed now.
        """
        twin = Segment(self._files, self._directory, self.base_offset, created_ms=self.created_ms)
        twin.log = self.log
        twin._offset_index = self.offset_index.detached()
        twin._time_index = self.time_index.detached()
        twin._size = self.size
        twin._tail = self._tail
        return twin

    def detached_closed(self) -> Segment:
        """Return such a copy of a closed segment, reading no files; safe in a thread."""
        twin = Segment(self._files, self._directory, self.base_offset, created_ms=self.created_ms)
        twin.log = self.log
        twin._offset_index = OffsetIndex(self.offset_index.file, self.base_offset)
        twin._time_index = TimeIndex(self.time_index.file, self.base_offset)
        twin._tail = self._tail
        return twin

    def truncate_to(self, offset: int) -> None:
        """Remove `offset` and all later records.

        If the segment is empty afterwards, the owner sets `created_ms`.
        """
        first_batch = self.position_for_offset(offset)
        self._memo.clear()
        self.offset_index.truncate_to_offset(offset)
        self.time_index.truncate_to_offset(offset)
        self.transaction_index.truncate_to_offset(offset)
        if first_batch is not None:
            self.log.truncate(first_batch[0])
            self._size = first_batch[0]
        if self._size == 0:
            self._first_batch_timestamp = None
        self._tail = self._scan_tail()

    def check_start(self, recovery_point: int) -> CheckStart:
        """See find_start."""
        if recovery_point <= self.base_offset:
            return from_the_first(self.base_offset)
        return find_start(self.log, self.offset_index, self.time_index, recovery_point)

    def trust(self, start: CheckStart) -> None:
        """Truncate the indexes to the entries before `start`."""
        self.offset_index.replace_entries(b"", keep=start.offset_entry_count)
        self.time_index.replace_entries(b"", keep=start.time_entry_count)

    def recover(
        self,
        on_batch: Callable[[BatchHeader, memoryview], None],
        *,
        index_interval_bytes: int,
        start: CheckStart | None = None,
        recent: Recent | None = None,
        is_active: bool = False,
    ) -> SegmentRecovery:
        """Truncate the file at the first bad batch and rebuild the offset and time indexes.

        The caller rebuilds the transaction index, which needs the producer state. `start` is from
        check_start, after `trust`; None checks everything. For `on_batch`, `recent` and errors see
        check_log. The indexes of an active segment need no last entry yet, so only the log file is
        opened.
        """
        start = start or from_the_first(self.base_offset)
        checked = check_log(
            self.log,
            on_batch,
            start,
            base_offset=self.base_offset,
            index_interval_bytes=index_interval_bytes,
            recent=recent,
        )
        self._memo.clear()
        self._first_batch_timestamp = None
        if checked.recovery.cut_bytes:
            self.log.truncate(checked.recovery.valid_bytes)
        self._size = checked.recovery.valid_bytes
        self.offset_index.replace_entries(checked.offset_entries, keep=start.offset_entry_count)
        if is_active and not self.offset_index.entry_count:
            # Truncating its one entry, from the last clean stop, now would wait for the disk. It is
            # not used before the first offset index entry, with which it is truncated.
            self.time_index.disregard()
        else:
            self.time_index.replace_entries(checked.time_entries, keep=start.time_entry_count)
        self._tail = checked.tail._replace(bytes_since_entry=0)
        if not is_active:
            self.on_roll()
        return checked.recovery

    def on_roll(self) -> None:
        """Complete the indexes and trim all files; appends have ended."""
        if self._tail is not None and self.time_index.append_if_later(
            self._tail.max_timestamp, self._tail.offset_of_max_timestamp
        ):
            self._tail = self._tail._replace(indexed_timestamp=self._tail.max_timestamp)
        self.log.trim()
        self.offset_index.trim()
        self.time_index.trim()

    def finish(self) -> None:
        """Call `on_roll` if the segment was in use."""
        if self._is_new or self._tail is not None:
            self.on_roll()

    def close(self) -> None:
        """Complete the indexes and close the files."""
        self.finish()
        self.close_files()

    def _undo_write(self, position: int, error: OSError) -> None:
        try:
            self.log.truncate(position)
            self.offset_index.cut_uncounted()
            self.time_index.cut_uncounted()
        except OSError:
            message = f"a failed write ({error}) cannot be undone"
            raise OSError(errno.EIO, message, self.log.path) from error

    def _load_tail(self) -> IndexTail:
        if self.size and not self.time_index.is_whole:
            self._tail = self._scan_tail()  # damaged, or without timestamps
        elif self.size:
            timestamp, offset = self.time_index.last_entry()
            # The distance to the last offset index entry restarts at 0, as in Kafka.
            self._tail = IndexTail(timestamp, offset, timestamp, 0)
        else:
            self._tail = empty_tail(self.base_offset)
        return self._tail

    def _scan_tail(self) -> IndexTail:
        indexed, offset = self.time_index.last_entry()
        timestamp = indexed
        for _, header in self.iterate_headers(self.offset_index.lookup(offset).position):
            if header.max_timestamp > timestamp:
                timestamp = header.max_timestamp
                offset = header.base_offset + header.last_offset_delta
        return IndexTail(timestamp, offset, indexed, 0)
