"""Numbers that the process keeps about itself; their text exposition comes with the console.

A leaf: imports nothing of ours.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# How long the loop was held, in milliseconds; 20 is the promise of DESIGN.md.
HOLD_BOUNDS_MS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 1000.0)


class Histogram:
    """Counts of values per range.

    Attributes:
        bounds: Upper ends of the ranges, ascending, each included; a last range has none.
        counts: Values per range, one more than bounds.
        total: Sum of all values.
        largest: The largest value since the last reset.
    """

    __slots__ = ("bounds", "counts", "largest", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        assert list(bounds) == sorted(set(bounds)), "bounds ascend"
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.largest = 0.0

    @property
    def count(self) -> int:
        """Number of values recorded."""
        return sum(self.counts)

    def record(self, value: float) -> None:
        """Count one value (about 0.25 us)."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        if value > self.largest:  # noqa: PLR1730 - max() would be half of this function
            self.largest = value

    def count_over(self, bound: float) -> int:
        """Return how many values exceeded one of `bounds`."""
        return sum(self.counts[self.bounds.index(bound) + 1 :])

    def quantile(self, share: float) -> float:
        """Return an upper bound of the value below which `share` (0 to 1) of all values lie."""
        wanted = share * self.count
        seen = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            seen += count
            if seen >= wanted:
                return min(bound, self.largest)
        return self.largest

    def reset(self) -> None:
        """Forget all values."""
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = self.largest = 0.0
