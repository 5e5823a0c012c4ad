"""Averages and maxima of recent times."""

from __future__ import annotations

from wirebroker.base.recent_times import PERIOD_MS, RecentTimes


def test_times_count_for_one_to_two_periods() -> None:
    times = RecentTimes()
    assert (times.average_ms(0), times.highest_ms(0)) == (None, None)
    times.add(10, 0)
    times.add(30, PERIOD_MS - 1)
    times.add(5, PERIOD_MS)
    assert (times.average_ms(PERIOD_MS), times.highest_ms(PERIOD_MS)) == (15, 30)
    later_ms = 2 * PERIOD_MS
    assert (times.average_ms(later_ms), times.highest_ms(later_ms)) == (5, 5)
    assert times.average_ms(3 * PERIOD_MS) is None
