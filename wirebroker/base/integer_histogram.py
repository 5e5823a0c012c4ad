"""Histograms of non-negative integers (microseconds, bytes).

    histogram.record(1_500)
    histogram.quantile(0.99)        # the upper end of a range: at most 25 % above the value

Values below 4 have a range each; larger powers of two are divided into four ranges, as in
HdrHistogram with two significant bits.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Final

# Larger values count as this: 12 days in microseconds, 1 TiB.
LARGEST: Final = (1 << 40) - 1
_INT64_BYTES: Final = 8


def range_of(value: int) -> int:
    """Return the index of a value's range."""
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
SLOTS: Final = _RANGES + 1


def new_slots(histograms: int = 1) -> memoryview:
    """Return empty slots for consecutive histograms."""
    return memoryview(bytearray(histograms * SLOTS * _INT64_BYTES)).cast("q")


class IntegerHistogram:
    """Counts of values per range, and the sum of the values.

    Attributes:
        slots: The counts, then the sum, as int64.
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
        """Number of recorded values."""
        return sum(self.counts)

    @property
    def total(self) -> int:
        """Sum of all values."""
        return self.slots[_RANGES]

    def record(self, value: int, times: int = 1) -> None:
        """Count a value `times` times."""
        self.slots[range_of(value)] += times
        self.slots[_RANGES] += value * times

    def copy(self) -> IntegerHistogram:
        """Return an independent copy."""
        result = IntegerHistogram()
        result.slots[:] = self.slots
        return result

    def plus(self, other: IntegerHistogram, sign: int = 1) -> IntegerHistogram:
        """Return the sum of both histograms, with sign -1 the difference."""
        result = IntegerHistogram()
        for number, (own_count, other_count) in enumerate(
            zip(self.slots, other.slots, strict=True)
        ):
            result.slots[number] = own_count + sign * other_count
        return result

    def count_to(self, bound: int) -> int:
        """Return the number of values in ranges up to a bound."""
        last = range_of(bound)
        return sum(self.slots[: last + (end_of(last) <= bound)])

    def quantile(self, share: float) -> int:
        """Return a value that this share (0 to 1) of all values does not exceed."""
        sums = list(accumulate(self.counts))
        return end_of(bisect_left(sums, max(1, share * sums[-1]))) if sums[-1] else 0
