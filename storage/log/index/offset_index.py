"""The offset index of a segment (`<base offset>.index`): offsets to positions in the log.

Position 0 never has an entry (index_tail.py), so zeros are not an entry.

Source: Kafka's OffsetIndex and LogSegment.append; format in storage/README.md.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from wirebroker.storage.log.index.sparse_index import SparseIndex

OFFSET_ENTRY = struct.Struct(">ii")


class OffsetEntry(NamedTuple):
    """The batch that ends with `offset` starts at `position`."""

    offset: int
    position: int


class OffsetIndex(SparseIndex):
    """The index from offsets to positions."""

    __slots__ = ()

    layout = OFFSET_ENTRY
    entry_bytes = OFFSET_ENTRY.size

    def lookup(self, offset: int) -> OffsetEntry:
        """Return the last entry at or before `offset`, or (base offset, 0)."""
        return self._entry_at(self._floor(offset - self.base_offset, field=0))

    def last_entry(self) -> OffsetEntry:
        """Return the last entry, or (base offset, 0)."""
        return self._entry_at(self.entry_count - 1)

    def ascending_below(self, offset: int) -> tuple[int, int, int]:
        """Return (count, offset, position); see SparseIndex."""
        count, last = self._ascending(offset - self.base_offset, offset_field=0)
        return (count, self.base_offset + last[0], last[1]) if count else (0, self.base_offset, 0)

    def offset_from_position(self, position: int) -> int | None:
        """Return the offset of the first entry at or after `position`, or None."""
        slot = self._floor(position - 1, field=1) + 1
        return self._entry_at(slot).offset if slot < self.entry_count else None

    def truncate_to_offset(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        self._keep_entries(self._floor(offset - self.base_offset - 1, field=0) + 1)

    def _entry_at(self, slot: int) -> OffsetEntry:
        if slot < 0:
            return OffsetEntry(self.base_offset, 0)
        relative, position = self._entry(slot)
        return OffsetEntry(self.base_offset + relative, position)
