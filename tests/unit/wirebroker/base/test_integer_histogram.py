"""Counts of integers in ranges, and quantiles from them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wirebroker.base.integer_histogram import (
    LARGEST,
    IntegerHistogram,
    end_of,
    range_of,
)


@given(st.integers(0, LARGEST))
def test_a_range_ends_at_most_a_quarter_above_its_values(value: int):
    end = end_of(range_of(value))
    assert value <= end <= value * 1.25
    assert range_of(end) == range_of(value)
    assert range_of(end + 1) == range_of(value) + 1 or end == LARGEST


@given(st.lists(st.integers(0, 10**7), min_size=1), st.sampled_from([0.5, 0.95, 0.99, 0.999, 1.0]))
def test_a_quantile_is_the_end_of_the_range_of_that_value(values: list[int], share: float):
    histogram = IntegerHistogram()
    for value in values:
        histogram.record(value)
    position = next(n for n in range(1, len(values) + 1) if n >= share * len(values))
    exact = sorted(values)[position - 1]
    assert histogram.quantile(share) == end_of(range_of(exact))
    assert (histogram.count, histogram.total) == (len(values), sum(values))


def test_values_out_of_range_count_at_the_ends():
    histogram = IntegerHistogram()
    histogram.record(-5)
    histogram.record(10 * LARGEST)
    assert histogram.counts[0] == histogram.counts[-1] == 1


def test_no_values_have_the_quantile_zero():
    assert IntegerHistogram().quantile(0.99) == 0


def test_histograms_are_added_and_subtracted():
    first, second = IntegerHistogram(), IntegerHistogram()
    for value in (1, 10, 100):
        first.record(value)
    second.record(10)
    both = first.plus(second)
    assert (both.count, both.total) == (4, 121)
    assert both.plus(second, -1).counts == first.counts
    first.record(100, -1)
    assert (first.count, first.total, first.quantile(1.0)) == (2, 11, end_of(range_of(10)))
