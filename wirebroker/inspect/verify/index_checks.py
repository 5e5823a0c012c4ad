"""Comparison of a segment's offset and time index with its batches, in one pass.

Each check takes every batch in order, unreadable bytes, and the end. Rules: storage/README.md.
Entries of zeros at the end are preallocated by Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.text import counted
from wirebroker.inspect.rows.index_rows import Entry, filled_entries, filler
from wirebroker.storage.log.index.offset_index import OFFSET_ENTRY
from wirebroker.storage.log.index.time_index import TIME_ENTRY

if TYPE_CHECKING:
    import struct
    from collections.abc import Iterator

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.inspect.verify.findings import FileReport
    from wirebroker.storage.files import DataFile


class _IndexCheck:
    def __init__(
        self, file: DataFile, layout: struct.Struct, report: FileReport, base_offset: int
    ) -> None:
        self._file = file
        self._layout = layout
        self._report = report
        self._base_offset = base_offset
        self._entries: Iterator[Entry] = filled_entries(file, layout)
        self._entry: Entry | None = None
        self._end = 0
        self._next()

    def _next(self) -> None:
        before, self._entry = self._entry, next(self._entries, None)
        if self._entry is None:
            return
        position, values = self._entry
        self._end = position + self._layout.size
        if before is not None and not self._rises(before.values, values):
            self._report.error(f"entry {values} comes after {before.values}", position=position)

    def _rises(self, before: tuple[int, ...], values: tuple[int, ...]) -> bool:
        return before[0] < values[0] and before[1] < values[1]

    def _check_filler(self) -> None:
        while self._entry is not None:
            self._next()
        for row in filler(self._file, self._layout, self._end):
            self._report.error(row["message"], position=row["position"])


class OffsetIndexCheck(_IndexCheck):
    """`.index`: each entry has the position of a batch and its last offset."""

    def __init__(self, file: DataFile, report: FileReport, base_offset: int) -> None:
        self._later: int | None = None  # an entry's offset: a later batch must end with it
        self._later_count = 0
        super().__init__(file, OFFSET_ENTRY, report, base_offset)

    def on_batch(self, position: int, header: BatchHeader) -> None:
        """Compare the entries for positions up to this batch."""
        if self._later is not None and header.last_offset >= self._later:
            if header.last_offset > self._later:
                self._report.error("its offset is not the last one of a batch", offset=self._later)
            self._later = None
        while self._entry is not None and self._entry.values[1] <= position:
            relative, target = self._entry.values
            offset = self._base_offset + relative
            if target < position:
                self._report.error(
                    f"it points to {target}, where no batch starts",
                    position=self._entry.position,
                    offset=offset,
                )
            elif offset > header.last_offset:
                self._later = offset
                self._later_count += 1
            elif offset != header.last_offset:
                self._report.error(
                    f"the batch it points to ends with {header.last_offset}",
                    position=self._entry.position,
                    offset=offset,
                )
            self._next()

    def on_damage(self, position: int, end: int) -> None:
        """Skip entries for damaged bytes."""
        self._later = None
        while self._entry is not None and position <= self._entry.values[1] < end:
            self._next()

    def finish(self) -> None:
        """Report the remaining entries."""
        if self._entry is not None:
            self._report.error(
                f"it points to {self._entry.values[1]}, beyond the last batch",
                position=self._entry.position,
                offset=self._base_offset + self._entry.values[0],
            )
        if self._later is not None:
            self._report.error("its offset is beyond the last batch", offset=self._later)
        if self._later_count:
            self._report.note(
                f"{counted(self._later_count, 'entry')} with the last offset of a later batch"
            )
        self._check_filler()


class TimeIndexCheck(_IndexCheck):
    """`.timeindex`: each entry names the first batch with the largest timestamp so far."""

    def __init__(self, file: DataFile, report: FileReport, base_offset: int) -> None:
        self._max_timestamp = -1
        self._last_timestamp = -1
        self._is_log_whole = True
        self._inner_count = 0  # entries with an offset inside their batch
        super().__init__(file, TIME_ENTRY, report, base_offset)

    def _rises(self, before: tuple[int, ...], values: tuple[int, ...]) -> bool:
        return before[0] < values[0] and before[1] <= values[1]

    def on_batch(self, position: int, header: BatchHeader) -> None:
        """Compare the entries for offsets in this batch."""
        del position
        before = self._max_timestamp
        self._max_timestamp = max(before, header.max_timestamp)
        while self._entry is not None:
            timestamp, relative = self._entry.values
            offset = self._base_offset + relative
            if offset > header.last_offset:
                return
            largest = before if offset < header.base_offset else self._max_timestamp
            if timestamp != largest and self._is_log_whole:
                self._report.error(
                    f"its timestamp is {timestamp}, but the largest up to there is {largest}",
                    position=self._entry.position,
                    offset=offset,
                )
            elif before == timestamp and self._is_log_whole:
                self._report.warning(
                    f"an earlier batch already has the timestamp {timestamp}",
                    position=self._entry.position,
                    offset=offset,
                )
            self._inner_count += offset != header.last_offset
            self._last_timestamp = timestamp
            self._next()

    def on_damage(self) -> None:
        """Stop comparing timestamps."""
        self._is_log_whole = False

    def finish(self, *, is_closed: bool) -> None:
        """Report the remaining entries; the index of a closed segment must have its last entry."""
        if self._entry is not None:
            self._report.error(
                "it is beyond the last batch",
                position=self._entry.position,
                offset=self._base_offset + self._entry.values[1],
            )
        elif is_closed and self._is_log_whole and self._last_timestamp < self._max_timestamp:
            self._report.warning(
                f"it ends with the timestamp {self._last_timestamp}, "
                f"the segment's largest is {self._max_timestamp}"
            )
        if self._inner_count:
            self._report.note(
                f"{counted(self._inner_count, 'entry')} with an offset inside a batch"
            )
        self._check_filler()
