"""The average and the maximum of recent times, as Kafka's metrics have them.

Times are kept in two periods of 30 s, of which the older one is forgotten when the next begins.

Source: Kafka's Avg and Max with the default MetricConfig.
"""

from __future__ import annotations

from typing import Final

PERIOD_MS: Final = 30_000


class _Period:
    __slots__ = ("begin_ms", "count", "highest_ms", "total_ms")

    def __init__(self, begin_ms: int) -> None:
        self.begin_ms = begin_ms
        self.count = 0
        self.total_ms = 0
        self.highest_ms = 0


class RecentTimes:
    """Times in milliseconds; `now_ms` is of a monotonic clock."""

    __slots__ = ("_periods",)

    def __init__(self) -> None:
        self._periods: list[_Period] = []

    def add(self, time_ms: int, now_ms: int) -> None:
        """Add a time."""
        self._forget(now_ms)
        if not self._periods or now_ms - self._periods[-1].begin_ms >= PERIOD_MS:
            self._periods.append(_Period(now_ms))
        newest = self._periods[-1]
        newest.count += 1
        newest.total_ms += time_ms
        newest.highest_ms = max(newest.highest_ms, time_ms)

    def average_ms(self, now_ms: int) -> float | None:
        """Return the average; None if there are no recent times."""
        self._forget(now_ms)
        count = sum(period.count for period in self._periods)
        return sum(period.total_ms for period in self._periods) / count if count else None

    def highest_ms(self, now_ms: int) -> int | None:
        """Return the maximum; None if there are no recent times."""
        self._forget(now_ms)
        return max((period.highest_ms for period in self._periods), default=None)

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - 2 * PERIOD_MS
        self._periods = [period for period in self._periods if period.begin_ms > oldest_ms]
