"""Evaluation of benchmark runs: medians, bounds, ratios."""

from __future__ import annotations

import random

import pytest

from benchmarks.measurement.pairs import Bounded, Pairs, Run, bounded


def run(rate: float, cpu_us: float) -> Run:
    return Run(rate, cpu_us, foreign_share=0.0, extra={})


def test_the_bounds_of_few_values_are_the_least_and_the_greatest():
    assert bounded([3.0, 1.0, 2.0]) == Bounded(2.0, 1.0, 3.0)


def test_the_bounds_of_one_value_are_the_value():
    assert bounded([4.0]) == Bounded(4.0, 4.0, 4.0)


# From tables of the sign test: values to drop at each end for 95 %.
@pytest.mark.parametrize(("count", "rank"), [(5, 0), (6, 0), (9, 1), (12, 2), (20, 5), (25, 7)])
def test_the_bounds_leave_out_as_many_values_as_the_sign_test_allows(count: int, rank: int):
    values = [float(number) for number in range(count)]
    random.Random(count).shuffle(values)
    bounds = bounded(values)
    assert (bounds.low, bounds.high) == (float(rank), float(count - 1 - rank))


def test_ratios_are_taken_within_pairs_so_that_a_drifting_machine_cancels_out():
    pairs = Pairs(
        ours=[run(200, 1), run(20, 10), run(2, 100)],
        theirs=[run(100, 3), run(10, 30), run(1, 300)],
    )
    assert pairs.rate_ratio() == Bounded(2.0, 2.0, 2.0)
    assert pairs.cpu_ratio() == Bounded(3.0, 3.0, 3.0)


def test_a_run_without_a_partner_is_no_pair():
    pairs = Pairs(ours=[run(1, 1), run(1, 1)], theirs=[run(1, 1)])
    with pytest.raises(ValueError, match="shorter"):
        pairs.rate_ratio()
