"""The segments of a log, ordered by base offset."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.storage.log.segment.segment import Segment


class Segments:
    """A list of segments; never empty once the log is loaded."""

    __slots__ = ("_base_offsets", "_segments")

    def __init__(self) -> None:
        self._base_offsets: list[int] = []  # strictly ascending
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def active(self) -> Segment:
        """The last segment, to which batches are appended."""
        return self._segments[-1]

    @property
    def base_offsets(self) -> list[int]:
        """The base offsets, ascending."""
        return list(self._base_offsets)

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return sum(segment.size for segment in self._segments)

    def add(self, segment: Segment) -> None:
        """Append a segment."""
        assert not self._segments or segment.base_offset > self._base_offsets[-1], segment
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)

    def floor_index(self, offset: int) -> int:
        """Return the index of the last segment that begins at or before `offset`, or -1."""
        return bisect_right(self._base_offsets, offset) - 1

    def since(self, offset: int) -> list[Segment]:
        """Return the segment that contains `offset`, and later ones."""
        return self._segments[max(0, self.floor_index(offset)) :]

    def since_flush(self, recovery_point: int) -> list[Segment]:
        """Return the segments whose files may not be on disk.

        One that ended exactly at the flush is included: its indexes got their last entries when it
        was rolled later.
        """
        return self.since(max(0, recovery_point - 1))

    def remove_before(self, offset: int) -> list[Segment]:
        """Remove and return the segments before the one that begins at `offset`."""
        index = bisect_left(self._base_offsets, offset)
        assert self._base_offsets[index] == offset, f"no segment begins at {offset}"
        removed = self._segments[:index]
        del self._segments[:index], self._base_offsets[:index]
        return removed

    def remove_from(self, offset: int) -> list[Segment]:
        """Remove and return the segments that begin at or after `offset`."""
        index = bisect_left(self._base_offsets, offset)
        removed = self._segments[index:]
        del self._segments[index:], self._base_offsets[index:]
        return removed

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace neighboring segments by one with the base offset of the first."""
        first = bisect_left(self._base_offsets, new.base_offset)
        last = first + len(old)
        assert self._segments[first:last] == list(old), f"some of {old} are missing"
        self._segments[first:last] = [new]
        self._base_offsets[first:last] = [new.base_offset]
