"""Counts of non-negative integers (microseconds, bytes) in ranges, whatever their size.

    histogram.record(1_500)
    histogram.quantile(0.99)        # the upper end of a range: at most 25 % above the value

Values below 4 have a range each; from there every power of two is cut into four ranges, as in
HdrHistogram with two significant bits.

A leaf.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Final

# Larger values count as this: 12 days in microseconds, 1 TiB.
LARGEST: Final = (1 << 40) - 1
_INT64_BYTES: Final = 8


def range_of(value: int) -> int:
    """Return the number of the range that a value lies in."""
    if value < 4:
        return max(value, 0)
    value = min(value, LARGEST)
    bits = value.bit_length()
    return (bits - 2) * 4 + (value >> (bits - 3) & 3)


def end_of(number: int) -> int:
    """Return the largest value of a range."""
    if number < 4:
        return number
    bits = number // 4 + 2
    return (1 << (bits - 1)) + ((number % 4 + 1) << (bits - 3)) - 1


_RANGES: Final = range_of(LARGEST) + 1
# Slots of one histogram.
SLOTS: Final = _RANGES + 1


def new_slots(histograms: int = 1) -> memoryview:
    """Return the empty slots of histograms that lie one after another."""
    return memoryview(bytearray(histograms * SLOTS * _INT64_BYTES)).cast("q")


class IntegerHistogram:
    """How many values lie in which range, and their sum.

    Attributes:
        slots: The counts of values per range, and last the sum of all values, as int64.
    """

    __slots__ = ("slots",)

    def __init__(self, slots: memoryview | None = None) -> None:
        self.slots = new_slots() if slots is None else slots

    @property
    def counts(self) -> list[int]:
        """Values per range."""
        return self.slots.tolist()[:-1]

    @property
    def count(self) -> int:
        """Number of values recorded."""
        return sum(self.counts)

    @property
    def total(self) -> int:
        """Sum of all values."""
        return self.slots[_RANGES]

    def record(self, value: int, times: int = 1) -> None:
        """Count a value once, or so many times."""
        self.slots[range_of(value)] += times
        self.slots[_RANGES] += value * times

    def copy(self) -> IntegerHistogram:
        """Return an independent histogram of the same values."""
        result = IntegerHistogram()
        result.slots[:] = self.slots
        return result

    def plus(self, other: IntegerHistogram, sign: int = 1) -> IntegerHistogram:
        """Return a histogram of both, or with sign -1 without the values of the other."""
        result = IntegerHistogram()
        for number, (ours, theirs) in enumerate(zip(self.slots, other.slots, strict=True)):
            result.slots[number] = ours + sign * theirs
        return result

    def count_to(self, bound: int) -> int:
        """Return how many values lie in the ranges that end at or below a bound."""
        last = range_of(bound)
        return sum(self.slots[: last + (end_of(last) <= bound)])

    def quantile(self, share: float) -> int:
        """Return a value that the given share (0 to 1) of all values does not exceed; 0 of none."""
        sums = list(accumulate(self.counts))
        return end_of(bisect_left(sums, max(1, share * sums[-1]))) if sums[-1] else 0
