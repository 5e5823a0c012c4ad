"""Numbers of slots over time."""

from __future__ import annotations

from array import array
from itertools import pairwise

import pytest

from wirebroker.console.model.samples import SampleRing, SlotNumbers, rate_of, time_reached


def sample(taken_ms: int, *numbers: int) -> SlotNumbers:
    return SlotNumbers(taken_ms, array("q", numbers))


def test_total_is_unknown_if_a_number_is_unknown_or_missing():
    numbers = sample(0, 1, 2, -1, 4)
    assert numbers.total(0, 2) == 3
    assert numbers.total(1, 2) is None
    assert numbers.total(3, 2) is None
    assert numbers.total(0, 0) is None
    assert [numbers.number(slot) for slot in (1, 2, 9)] == [2, None, None]


@pytest.mark.parametrize(
    ("before", "after", "rate"),
    [
        (sample(0, 10), sample(2000, 30), 10.0),
        (sample(0, 10), sample(2000, 10), 0.0),
        (sample(0, 10), sample(2000, 9), None),
        (sample(0, -1), sample(2000, 9), None),
        (sample(0), sample(2000, 9), None),
        (sample(0, 10), sample(0, 30), None),
        (None, sample(0, 30), None),
    ],
)
def test_rate_is_the_growth_in_a_second(before, after, rate):
    assert rate_of(before, after, 0, 1) == rate


def test_ring_keeps_recent_samples_and_one_a_minute_of_an_hour():
    ring = SampleRing()
    for number in range(3000):
        ring.add(sample(number * 5000, number))
    times = [each.taken_ms for each in ring]
    assert times[-60:] == [number * 5000 for number in range(2940, 3000)]
    older = times[:-60]
    assert len(older) == 60
    assert {after - before for before, after in pairwise(older)} == {60_000}


def test_ring_keeps_fewer_samples_of_many_slots():
    ring = SampleRing()
    for number in range(100):
        ring.add(SlotNumbers(number, array("q", [number]) * 300_000))
    assert sum(len(each.numbers) for each in ring) <= 2 << 20
    assert ring.latest is not None
    assert ring.latest.taken_ms == 99


def test_earlier_sample_is_the_newest_of_the_age():
    ring = SampleRing()
    assert ring.before(1000) is None
    ring.add(sample(0, 1))
    assert ring.before(1000) is None
    for taken_ms in (500, 1200, 2000):
        ring.add(sample(taken_ms, 1))
    earlier = [ring.before(age_ms) for age_ms in (500, 900, 60_000)]
    assert [each and each.taken_ms for each in earlier] == [1200, 500, 0]


def test_time_of_a_record_is_estimated_between_samples():
    samples = (sample(0, 100), sample(10_000, 100), sample(20_000, 200))
    reached = time_reached(samples, 0, 149)
    assert reached is not None
    assert (reached.time_ms, reached.is_latest) == (15_000, False)


def test_time_of_a_record_before_the_first_sample_is_an_upper_bound():
    reached = time_reached((sample(5000, 100), sample(10_000, 200)), 0, 7)
    assert reached == (5000, True)


def test_time_of_a_record_that_does_not_exist_is_unknown():
    assert time_reached((sample(0, 100),), 0, 100) is None
    assert time_reached((), 0, 0) is None
