"""Which dead letters of a partition were redriven: a committed offset and its metadata.

All records before the offset were redriven or deleted. The metadata has the redriven ranges after
it, relative to the offset: `2-5,9` with offset 100 means 102 to 105 and 109.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from typing import Final

# Kafka's default of offset.metadata.max.bytes.
MOST_METADATA_BYTES: Final = 4_096
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


class RedriveProgress:
    """The redriven records of one partition."""

    def __init__(self, offset: int, metadata: str = "") -> None:
        """Parse a committed offset.

        Raises:
            ValueError: The metadata has another form.
        """
        self.offset = offset
        # Sorted, disjoint, not adjacent; ends are included.
        self._ranges: list[tuple[int, int]] = []
        for text in metadata.split(",") if metadata else ():
            match = _RANGE.fullmatch(text)
            if match is None:
                raise ValueError(f"{metadata[:80]!r} is not a list of redriven records")
            first = offset + int(match[1])
            self._ranges.append((first, offset + int(match[2]) if match[2] else first))

    @classmethod
    def within(cls, offset: int, metadata: str, start: int, end: int) -> RedriveProgress:
        """Return the progress of a committed offset (negative: none) in a partition's range.

        Raises:
            ValueError: See __init__.
        """
        progress = cls(max(offset, 0), metadata)
        if progress.offset > end:  # of a deleted topic with this name
            progress = cls(start)
        progress.begin_at(start)
        return progress

    @property
    def metadata(self) -> str:
        """The text to commit with the offset."""
        return ",".join(
            f"{first - self.offset}-{last - self.offset}"
            if last > first
            else str(first - self.offset)
            for first, last in self._ranges
        )

    def contains(self, offset: int) -> bool:
        """Return whether a record was redriven."""
        if offset < self.offset:
            return True
        index = bisect_right(self._ranges, (offset, 1 << 63)) - 1
        return index >= 0 and offset <= self._ranges[index][1]

    def begin_at(self, offset: int) -> None:
        """Note that no record is before an offset."""
        if offset > self.offset:
            self.offset = offset
            self._ranges = [(first, last) for first, last in self._ranges if last >= offset]
            self._absorb()

    def add(self, offset: int) -> None:
        """Note that a record was redriven."""
        if self.contains(offset):
            return
        insort(self._ranges, (offset, offset))
        merged: list[tuple[int, int]] = []
        for first, last in self._ranges:
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        self._ranges = merged
        self._absorb()

    def _absorb(self) -> None:
        while self._ranges and self._ranges[0][0] <= self.offset:
            self.offset = self._ranges.pop(0)[1] + 1
