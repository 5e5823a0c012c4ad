"""The history of the wall clock since the start, so that a jump does not make records look old.

A jump is a change of the difference between wall clock and monotonic clock by more than JUMP_MS
between two readings. (If the monotonic clock stops during sleep, records are kept longer.) The
former clock, as it would run without the jump, counts for one retention period after it; records
that were fresh at the jump have expired by then.

Jumps before the start are unknown, because they look like time that has passed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Ages are compared with minutes to years.
JUMP_MS: Final = 1_000

# A wall clock that stands still adds one every second. The former clocks that differ least from the
# present one are dropped first.
_MOST_FORMER: Final = 16


class FormerClock(NamedTuple):
    """A clock from before a jump, as it would be now."""

    now_ms: int
    since_ms: int  # since the jump away from it


class ClockReading(NamedTuple):
    """One moment on all clocks of the process."""

    now_ms: int
    former: tuple[FormerClock, ...] = ()
    # Since the process first read the clocks.
    uptime_ms: int = 0

    def age_ms(self, timestamp_ms: int, *, kept_ms: int) -> int:
        """Return the smallest age of a time by any clock on which it is not in the future.

        Clocks left longer ago than `kept_ms`, the retention period, count only if the time is in
        the future by all others. The age is negative if it is in the future by all clocks.
        """
        age = self.now_ms - timestamp_ms
        if not self.former:
            return age
        recent = [clock.now_ms for clock in self.former if clock.since_ms <= kept_ms]
        for clocks in ([self.now_ms, *recent], [clock.now_ms for clock in self.former]):
            ages = [now_ms - timestamp_ms for now_ms in clocks if now_ms >= timestamp_ms]
            if ages:
                return min(ages)
        return age

    def earliest_ms(self, *, kept_ms: int) -> int:
        """Return the earliest time on any clock left within `kept_ms`."""
        times = [clock.now_ms for clock in self.former if clock.since_ms <= kept_ms]
        return min([self.now_ms, *times])


class WallClocks:
    """The clocks seen so far; `look` must be called regularly."""

    __slots__ = ("_distance_ms", "_former", "_started_ms")

    # All differences (wall - monotonic) are more than JUMP_MS apart.

    def __init__(self, now_ms: int, monotonic_s: float) -> None:
        self._started_ms = _milliseconds(monotonic_s)
        self._distance_ms = now_ms - self._started_ms
        # Difference -> monotonic time when the clock was left.
        self._former: dict[int, int] = {}

    def look(self, now_ms: int, monotonic_s: float) -> int:
        """Read the clocks; return the wall clock's jump in milliseconds, usually 0."""
        monotonic_ms = _milliseconds(monotonic_s)
        distance = now_ms - monotonic_ms
        jump = distance - self._distance_ms
        if abs(jump) <= JUMP_MS:
            return 0
        self._former.pop(self._distance_ms, None)
        self._former[self._distance_ms] = monotonic_ms
        self._distance_ms = distance
        for former in sorted(self._former, key=lambda former: abs(former - distance)):
            is_back = abs(former - distance) <= JUMP_MS
            if is_back or len(self._former) > _MOST_FORMER:
                del self._former[former]
        return jump

    def moment(self, now_ms: int, monotonic_s: float) -> ClockReading:
        """Read the clocks and return the time on all of them."""
        self.look(now_ms, monotonic_s)
        monotonic_ms = _milliseconds(monotonic_s)
        former = tuple(
            FormerClock(monotonic_ms + distance, monotonic_ms - left_ms)
            for distance, left_ms in self._former.items()
        )
        return ClockReading(now_ms, former, monotonic_ms - self._started_ms)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
