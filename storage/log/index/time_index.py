"""The time index of a segment (`.timeindex`): timestamps to offsets.

No record before the batch of an entry has a later timestamp.

Source: Kafka's TimeIndex and LogSegment; format in storage/README.md.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.records.batch import NO_TIMESTAMP
from wirebroker.storage.log.index.sparse_index import SparseIndex

if TYPE_CHECKING:
    from wirebroker.storage.files import DataFile

TIME_ENTRY = struct.Struct(">qi")


class TimeEntry(NamedTuple):
    """The batch that ends with `offset` has the largest timestamp so far."""

    timestamp: int
    offset: int


class TimeIndex(SparseIndex):
    """The index from timestamps to offsets."""

    __slots__ = ("_last_entry",)

    layout = TIME_ENTRY
    entry_bytes = TIME_ENTRY.size

    def __init__(self, file: DataFile, base_offset: int) -> None:
        super().__init__(file, base_offset)
        self._last_entry: TimeEntry | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the file may be complete, for a segment with records."""
        return self.entry_count > 0 and self.file.size() % self.entry_bytes == 0

    def lookup(self, timestamp: int) -> TimeEntry:
        """Return the last entry at or before `timestamp`, or (-1, base offset)."""
        return self._entry_at(self._floor(timestamp, field=0))

    def last_entry(self) -> TimeEntry:
        """Return the last entry, or (-1, base offset)."""
        if self._last_entry is None:
            self._last_entry = self._entry_at(self.entry_count - 1)
        return self._last_entry

    def ascending_below(self, offset: int) -> tuple[int, int, int]:
        """Return (count, timestamp, offset); see SparseIndex."""
        count, last = self._ascending(offset - self.base_offset, offset_field=1)
        return (count, last[0], self.base_offset + last[1]) if count else (0, -1, self.base_offset)

    def commit_entries(self, count: int) -> None:
        """See SparseIndex."""
        super().commit_entries(count)
        self._last_entry = None

    def append_if_later(self, timestamp: int, offset: int) -> bool:
        """Append an entry if its timestamp is later; return whether it was."""
        if timestamp <= self.last_entry().timestamp:
            return False
        self.write_entries(TIME_ENTRY.pack(timestamp, offset - self.base_offset))
        self.commit_entries(1)
        return True

    def truncate_to_offset(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        self._keep_entries(self._floor(offset - self.base_offset - 1, field=1) + 1)

    def disregard(self) -> None:
        """See SparseIndex."""
        super().disregard()
        self._last_entry = None

    def _keep_entries(self, count: int) -> None:
        super()._keep_entries(count)
        self._last_entry = None

    def _entry_at(self, slot: int) -> TimeEntry:
        if slot < 0:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        timestamp, relative = self._entry(slot)
        return TimeEntry(timestamp, self.base_offset + relative)
