"""The in-flight batches of a share partition, by first offset.

Source: the map `cachedState` of Kafka's SharePartition.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch


class InFlightRecords:
    """Batches in the order of their offsets; there may be gaps between them."""

    __slots__ = ("_batches", "_first_offsets")

    def __init__(self) -> None:
        self._first_offsets: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __bool__(self) -> bool:
        return bool(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        """The first batch; there must be one."""
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        """The last batch; there must be one."""
        return self._batches[-1]

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch; it replaces one with the same first offset."""
        index = bisect_left(self._first_offsets, batch.first_offset)
        if index < len(self._batches) and self._first_offsets[index] == batch.first_offset:
            self._batches[index] = batch
        else:
            self._first_offsets.insert(index, batch.first_offset)
            self._batches.insert(index, batch)

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at or before `offset`."""
        index = bisect_right(self._first_offsets, offset) - 1
        return self._batches[index] if index >= 0 else None

    def higher(self, offset: int) -> InFlightBatch | None:
        """Return the first batch that begins after `offset`."""
        index = bisect_right(self._first_offsets, offset)
        return self._batches[index] if index < len(self._batches) else None

    def between(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that begin in a range."""
        start = bisect_left(self._first_offsets, first_offset)
        end = bisect_right(self._first_offsets, last_offset)
        return self._batches[start:end]

    def overlapping(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that begin in a range, and the last one before it."""
        floor = self.floor(first_offset)
        return self.between(first_offset if floor is None else floor.first_offset, last_offset)

    def remove_below(self, offset: int) -> None:
        """Remove the batches that end before `offset`."""
        end = bisect_left(self._first_offsets, offset)
        if end and self._batches[end - 1].last_offset >= offset:
            end -= 1
        del self._first_offsets[:end]
        del self._batches[:end]

    def clear(self) -> None:
        """Remove all batches."""
        self._first_offsets.clear()
        self._batches.clear()
