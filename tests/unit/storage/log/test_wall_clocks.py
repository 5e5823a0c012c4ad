"""Jumps of the wall clock: detected with the monotonic clock, and the resulting ages."""

from __future__ import annotations

from wirebroker.storage.log.wall_clocks import ClockReading, FormerClock, WallClocks

START = 1_700_000_000_000
YEAR = 365 * 86_400_000
WEEK = 7 * 86_400_000
HOUR = 3_600_000


def clocks() -> WallClocks:
    return WallClocks(START, 100.0)


def test_clocks_that_go_on_together_have_not_jumped():
    seen = clocks()
    assert seen.look(START + HOUR, 100.0 + 3600) == 0
    assert seen.moment(START + HOUR, 100.0 + 3600) == ClockReading(START + HOUR, (), HOUR)


def test_a_step_of_less_than_a_second_is_no_jump_but_many_are():
    seen = clocks()
    assert seen.look(START + 900, 100.0) == 0
    assert seen.look(START + 1_800, 100.0) == 1_800


def test_a_jump_leaves_the_former_clock_going_on():
    seen = clocks()
    assert seen.look(START + YEAR + 10, 100.01) == YEAR
    later = seen.moment(START + YEAR + HOUR, 100.0 + 3600)
    assert later.former == (FormerClock(START + HOUR, HOUR - 10),)


def test_a_jump_and_its_way_back_leave_the_wrong_clock_behind():
    seen = clocks()
    assert seen.look(START - YEAR, 100.0) == -YEAR
    assert seen.look(START + HOUR, 100.0 + 3600) == YEAR
    (wrong,) = seen.moment(START + HOUR, 100.0 + 3600).former
    assert wrong.now_ms == START - YEAR + HOUR


def test_of_many_clocks_those_next_to_the_present_one_are_forgotten():
    seen = clocks()
    seen.look(START - YEAR, 100.0)
    for seconds in range(0, 200, 2):  # the wall clock stands still from now on
        seen.look(START - YEAR, 100.0 + seconds)
    moment = seen.moment(START - YEAR, 300.0)
    assert len(moment.former) == 16
    assert max(clock.now_ms for clock in moment.former) == START + 200_000
    assert moment.age_ms(START, kept_ms=WEEK) == 200_000


def test_what_was_fresh_stays_fresh_after_a_jump_ahead():
    seen = clocks()
    seen.look(START + YEAR, 100.0)
    moment = seen.moment(START + YEAR + HOUR, 100.0 + 3600)
    assert moment.age_ms(START, kept_ms=WEEK) == HOUR
    assert moment.age_ms(START + YEAR, kept_ms=WEEK) == HOUR


def test_what_was_fresh_ages_on_after_a_jump_back():
    seen = clocks()
    seen.look(START - YEAR, 100.0)
    moment = seen.moment(START - YEAR + HOUR, 100.0 + 3600)
    assert moment.age_ms(START, kept_ms=WEEK) == HOUR
    assert moment.age_ms(START - YEAR, kept_ms=WEEK) == HOUR


def test_what_is_old_by_all_clocks_is_old():
    seen = clocks()
    seen.look(START + YEAR, 100.0)
    moment = seen.moment(START + YEAR + HOUR, 100.0 + 3600)
    assert moment.age_ms(START - 30 * WEEK, kept_ms=WEEK) == 30 * WEEK + HOUR


def test_a_former_clock_does_not_count_for_longer_than_things_are_kept():
    moment = ClockReading(START + YEAR, (FormerClock(START, WEEK + 1),))
    assert moment.age_ms(START - HOUR, kept_ms=WEEK) == YEAR + HOUR
    assert moment.age_ms(START - HOUR, kept_ms=WEEK + 1) == HOUR
    assert moment.earliest_ms(kept_ms=WEEK) == START + YEAR
    assert moment.earliest_ms(kept_ms=WEEK + 1) == START


def test_a_time_ahead_of_all_clocks_has_an_age_below_zero():
    moment = ClockReading(START, (FormerClock(START - HOUR, 0),))
    assert moment.age_ms(START + 5, kept_ms=WEEK) == -5
