"""Jumps of the wall clock: detected with the monotonic clock, and the resulting ages."""

from __future__ import annotations

from wirebroker.storage.log.wall_clocks import ClockReading, FormerClock, WallClocks

START = 1_700_000_000_000
YEAR = 365 * 86_400_000
WEEK = 7 * 86_400_000
HOUR = 3_600_000


def clocks() -> WallClocks:
    return WallClocks(START, 100.0)


def test_clocks_advancing_together_have_not_jumped():
    wall_clocks = clocks()
    assert wall_clocks.look(START + HOUR, 100.0 + 3600) == 0
    assert wall_clocks.moment(START + HOUR, 100.0 + 3600) == ClockReading(START + HOUR, (), HOUR)


def test_a_step_of_less_than_a_second_is_no_jump_but_many_are():
    wall_clocks = clocks()
    assert wall_clocks.look(START + 900, 100.0) == 0
    assert wall_clocks.look(START + 1_800, 100.0) == 1_800


def test_a_jump_leaves_the_former_clock_going_on():
    wall_clocks = clocks()
    assert wall_clocks.look(START + YEAR + 10, 100.01) == YEAR
    later = wall_clocks.moment(START + YEAR + HOUR, 100.0 + 3600)
    assert later.former == (FormerClock(START + HOUR, HOUR - 10),)


def test_a_jump_and_its_way_back_leave_the_wrong_clock_behind():
    wall_clocks = clocks()
    assert wall_clocks.look(START - YEAR, 100.0) == -YEAR
    assert wall_clocks.look(START + HOUR, 100.0 + 3600) == YEAR
    (wrong,) = wall_clocks.moment(START + HOUR, 100.0 + 3600).former
    assert wrong.now_ms == START - YEAR + HOUR


def test_former_clocks_close_to_the_current_are_forgotten_first():
    wall_clocks = clocks()
    wall_clocks.look(START - YEAR, 100.0)
    for seconds in range(0, 200, 2):  # the wall clock stands still from now on
        wall_clocks.look(START - YEAR, 100.0 + seconds)
    reading = wall_clocks.moment(START - YEAR, 300.0)
    assert len(reading.former) == 16
    assert max(clock.now_ms for clock in reading.former) == START + 200_000
    assert reading.age_ms(START, kept_ms=WEEK) == 200_000


def test_recent_timestamp_stays_recent_after_forward_jump():
    wall_clocks = clocks()
    wall_clocks.look(START + YEAR, 100.0)
    reading = wall_clocks.moment(START + YEAR + HOUR, 100.0 + 3600)
    assert reading.age_ms(START, kept_ms=WEEK) == HOUR
    assert reading.age_ms(START + YEAR, kept_ms=WEEK) == HOUR


def test_recent_timestamp_ages_normally_after_backward_jump():
    wall_clocks = clocks()
    wall_clocks.look(START - YEAR, 100.0)
    reading = wall_clocks.moment(START - YEAR + HOUR, 100.0 + 3600)
    assert reading.age_ms(START, kept_ms=WEEK) == HOUR
    assert reading.age_ms(START - YEAR, kept_ms=WEEK) == HOUR


def test_timestamp_old_by_all_clocks_is_old():
    wall_clocks = clocks()
    wall_clocks.look(START + YEAR, 100.0)
    reading = wall_clocks.moment(START + YEAR + HOUR, 100.0 + 3600)
    assert reading.age_ms(START - 30 * WEEK, kept_ms=WEEK) == 30 * WEEK + HOUR


def test_former_clock_is_ignored_after_the_retention_time():
    reading = ClockReading(START + YEAR, (FormerClock(START, WEEK + 1),))
    assert reading.age_ms(START - HOUR, kept_ms=WEEK) == YEAR + HOUR
    assert reading.age_ms(START - HOUR, kept_ms=WEEK + 1) == HOUR
    assert reading.earliest_ms(kept_ms=WEEK) == START + YEAR
    assert reading.earliest_ms(kept_ms=WEEK + 1) == START


def test_a_time_ahead_of_all_clocks_has_an_age_below_zero():
    reading = ClockReading(START, (FormerClock(START - HOUR, 0),))
    assert reading.age_ms(START + 5, kept_ms=WEEK) == -5
