"""The positions of a segment's last used batches, which spare sequential consumers a search."""

from __future__ import annotations

# A few consumers.
_MOST_ENTRIES = 32


class BatchPositions(dict[int, tuple[int, int]]):
    """Offset -> (position of the batch that contains it, that batch's size or 0 if unknown)."""

    __slots__ = ()

    def remember(self, offset: int, position: int, size: int) -> None:
        """Add an entry; the oldest one is dropped if there are too many."""
        self[offset] = (position, size)
        if len(self) > _MOST_ENTRIES:
            del self[next(iter(self))]
