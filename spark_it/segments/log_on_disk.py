"""Read access to one partition's log, while a broker may write, roll and remove segments.

An open file keeps its content, even if it is renamed or removed. An outdated listing is repeated.
Compaction moves the old segment away before it renames the new one (segment_swap.py); in between,
the new one is read as `.swap`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import batch_crc, iterate_records, read_batch_header
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
from wirebroker.segments.errors import DataLossError
from wirebroker.segments.read_ahead import ReadAhead
from wirebroker.storage.log.producers.producer_snapshot import SUFFIX as SNAPSHOT_SUFFIX
from wirebroker.storage.log.producers.producer_snapshot import snapshot_offset
from wirebroker.storage.log.segment.batch_scan import scan_batches, scan_headers
from wirebroker.storage.log.segment.segment_files import (
    SWAP_SUFFIX,
    SegmentFiles,
    segment_base_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction

# Attempts to open a file that a broker may remove or replace after the listing.
_TRIES: Final = 5


class _ReadProgress:
    __slots__ = ("offset",)

    def __init__(self, offset: int) -> None:
        self.offset = offset


class LogOnDisk:
    """A partition's log.

    `base_offsets` and `snapshots`, from the last listing, are in order.
    """

    __slots__ = ("_files", "_floor_of_log", "_swapped", "base_offsets", "path", "snapshots")

    def __init__(self, path: str, *, log_start_offset: int = 0) -> None:
        """List a log, whose first segment may begin above or below `log_start_offset`."""
        self.path = path
        self._files = ReadOnlyFiles()
        self._floor_of_log = log_start_offset
        self.base_offsets: list[int] = []
        self.snapshots: list[int] = []
        # Segments that exist only as `.swap`.
        self._swapped: frozenset[int] = frozenset()
        self.list_again()

    def list_again(self) -> None:
        """List the segments and producer snapshots."""
        names = self._names()
        named = segment_base_offsets(names)
        swapped = segment_base_offsets(
            name.removesuffix(SWAP_SUFFIX) for name in names if name.endswith(SWAP_SUFFIX)
        )
        self._swapped = frozenset(swapped) - frozenset(named)
        self.base_offsets = sorted({*named, *swapped})
        offsets = (snapshot_offset(name) for name in names if name.endswith(SNAPSHOT_SUFFIX))
        self.snapshots = sorted(offset for offset in offsets if offset is not None)

    def _names(self) -> list[str]:
        """List the directory until two listings agree, because one may miss renamed files."""
        names = sorted(self._files.list_files(self.path))
        for _ in range(_TRIES):
            before, names = names, sorted(self._files.list_files(self.path))
            if names == before:
                break
        return names

    @property
    def start_offset(self) -> int:
        """The first readable offset."""
        return max(self._floor_of_log, self.base_offsets[0] if self.base_offsets else 0)

    def snapshot(self, offset: int) -> bytes | None:
        """Return the producer snapshot at an offset; None if it was removed."""
        try:
            return self._files.read_file(f"{self.path}/{offset:020d}{SNAPSHOT_SUFFIX}")
        except FileNotFoundError:
            return None

    def find_end_offset(self) -> int:
        """Return the offset after the last complete batch with a correct checksum."""
        for _ in range(_TRIES):
            if not self.base_offsets:
                return self._floor_of_log
            base_offset = self.base_offsets[-1]
            segment = self._segment(base_offset)
            try:
                segment.log.read_at(0, 1)  # fails if the file was removed
                size = segment.log.size()
                entry = segment.offset_index.last_entry()
                end_offset = _end_from(segment, entry.position, size) if entry.position else None
                if end_offset is None:
                    end_offset = _end_from(segment, 0, size)
            except FileNotFoundError:
                self.list_again()
            else:
                return base_offset if end_offset is None else end_offset
        raise DataLossError(f"{self.path} changes faster than it can be listed")

    def headers(
        self, from_offset: int, end_offset: int
    ) -> Iterator[tuple[SegmentFiles, int, BatchHeader]]:
        """Yield the segment, position and header of each batch with offsets in a range.

        Raises:
            KafkaError, OSError: A segment is damaged or was removed.
        """
        for segment in self.segments_from(from_offset):
            if segment.base_offset >= end_offset:
                return
            start = _position_of(segment, from_offset)
            for position, header in scan_headers(segment.log, start, segment.log.size()):
                if header.last_offset >= from_offset:
                    if header.base_offset >= end_offset:
                        return
                    yield segment, position, header
                if header.last_offset + 1 >= end_offset:
                    return

    def segments_from(self, offset: int) -> list[SegmentFiles]:
        """Return the segment that contains an offset, and later ones."""
        first = max(0, bisect_right(self.base_offsets, offset) - 1)
        return [self._segment(base_offset) for base_offset in self.base_offsets[first:]]

    def aborted(self, from_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in a range."""
        transactions: list[AbortedTransaction] = []
        for segment in self.segments_from(from_offset):
            search = segment.transaction_index.collect(from_offset, end_offset)
            transactions += search.transactions
            if search.is_complete:
                break
        return transactions

    def offset_for_time(self, timestamp: int, end_offset: int) -> int | None:
        """Return the first offset below the end with this timestamp or a later one, or None.

        Raises:
            KafkaError, OSError: As `headers`.
        """
        start = self.start_offset
        segments = self.segments_from(start)
        for number, segment in enumerate(segments):
            if segment.base_offset >= end_offset:
                return None
            index = segment.time_index
            is_closed = number + 1 < len(segments)
            # A closed segment's last entry has its largest timestamp.
            if is_closed and index.is_whole and index.last_entry().timestamp < timestamp:
                continue
            from_offset = max(start, segment.base_offset, index.lookup(timestamp).offset)
            stop = min(end_offset, segments[number + 1].base_offset) if is_closed else end_offset
            for owner, position, header in self.headers(from_offset, stop):
                if header.max_timestamp >= timestamp:
                    batch = owner.log.read_at(position, header.size)
                    for record in iterate_records(batch, header):
                        if record.timestamp >= timestamp and record.offset >= start:
                            return record.offset if record.offset < end_offset else None
        return None

    def batches(
        self,
        from_offset: int,
        end_offset: int,
        *,
        fail_on_data_loss: bool,
        on_loss: Callable[[int, int], None] = lambda *_: None,
    ) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield the batches with offsets in a range, with verified checksums.

        Without `fail_on_data_loss`, `on_loss` is called with the bounds of missing records.

        Raises:
            DataLossError: Records are missing.
            KafkaError: CORRUPT_MESSAGE: a batch is damaged.
            OSError: Reading failed.
        """
        progress = _ReadProgress(from_offset)
        tries = 0
        while tries < _TRIES:
            before = progress.offset
            if before < self.start_offset:
                self._report_loss(fail_on_data_loss, before, self.start_offset)
                on_loss(before, min(self.start_offset, end_offset))
                progress.offset = self.start_offset
            try:
                if (yield from self._walk(progress, end_offset)):
                    return
            except FileNotFoundError:
                pass
            self.list_again()
            tries = tries + 1 if progress.offset == before else 0
        self._report_loss(fail_on_data_loss, progress.offset, end_offset)
        on_loss(progress.offset, end_offset)

    def _walk(
        self, progress: _ReadProgress, end_offset: int
    ) -> Generator[tuple[BatchHeader, memoryview], None, bool]:
        """Yield batches until the listing is outdated; return whether the end was reached."""
        for segment in self.segments_from(progress.offset):
            if segment.base_offset >= end_offset:
                break
            start = _position_of(segment, progress.offset)
            # The index may not match the log, but this is only advice.
            read_ahead = ReadAhead(
                segment.log, start, segment.offset_index.lookup(end_offset).position
            )
            for position, header, batch in scan_batches(segment.log, start, segment.log.size()):
                read_ahead.reached(position)
                if header.base_offset >= end_offset:
                    return True
                if header.last_offset >= progress.offset:
                    if batch_crc(batch, 0, len(batch)) != header.crc:
                        raise KafkaError(
                            ErrorCode.CORRUPT_MESSAGE,
                            f"the checksum of the batch at position {position} of "
                            f"{segment.log.path} is wrong",
                        )
                    yield header, batch
                    progress.offset = header.last_offset + 1
                    if progress.offset >= end_offset:
                        return True
        return progress.offset >= end_offset or self.base_offsets[-1:] > [end_offset - 1]

    def _report_loss(self, fail_on_data_loss: bool, offset: int, next_offset: int) -> None:
        if fail_on_data_loss:
            raise DataLossError(
                f"{self.path}: the records from offset {offset} up to {next_offset} no longer "
                "exist: removed by retention or deletion, or truncated; failOnDataLoss=false "
                "skips them"
            )

    def _segment(self, base_offset: int) -> SegmentFiles:
        segment = SegmentFiles(self._files, self.path, base_offset)
        if base_offset in self._swapped:
            segment.use_directory(SWAP_SUFFIX)
        return segment


def _position_of(segment: SegmentFiles, offset: int) -> int:
    """Return the position of a batch at or before an offset's."""
    segment.log.read_at(0, 1)  # before the index: fails if the file was removed
    position = segment.offset_index.lookup(offset).position
    head = segment.log.read_at(position, HEADER_BYTES)
    try:
        header = read_batch_header(head)
    except KafkaError:
        return 0  # the index does not match the log
    is_before = segment.base_offset <= header.base_offset <= offset
    return position if is_before else 0


def _end_from(segment: SegmentFiles, position: int, size: int) -> int | None:
    """Return the offset after the last complete batch, or None."""
    end: int | None = None
    log = segment.log
    while position + HEADER_BYTES <= size:
        try:
            header = read_batch_header(log.read_at(position, HEADER_BYTES))
        except KafkaError:
            break
        if header.size > size - position or header.base_offset < (end or segment.base_offset):
            break
        batch = memoryview(log.read_at(position, header.size))
        if batch_crc(batch, 0, len(batch)) != header.crc:
            break
        end = header.last_offset + 1
        position += header.size
    return end
