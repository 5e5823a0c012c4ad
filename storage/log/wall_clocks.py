"""What the wall clock has shown since the start: a jump of it must not make records old.

    present clock    the wall clock as it goes now
    former clock     as it went before a jump, and would have gone on

A jump is a change of the distance between the wall clock and the monotonic one by more than
JUMP_MS between two looks. (Where the monotonic clock stands still while the machine sleeps, waking
up is a jump too; records are then kept longer by the time slept.) A former clock makes things young
for as long as whoever asks keeps them: what was fresh when the jump came is gone by then anyway.

No jump is known from before the start: while nothing runs, nobody can tell one from time that
passed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Steps below it make no record old: ages are compared with minutes to years.
JUMP_MS: Final = 1_000

# Clocks that go to and fro have few readings. One that stands still leaves a new one every second:
# of many, those next to the present one are forgotten, which tell the least.
_MOST_FORMER: Final = 16


class FormerClock(NamedTuple):
    """What a clock from before a jump would show now."""

    now_ms: int
    since_ms: int  # how long ago the jump away from it was


class ClockReading(NamedTuple):
    """One moment as all clocks of the process show it."""

    now_ms: int
    former: tuple[FormerClock, ...] = ()
    # How long the process has looked at clocks.
    uptime_ms: int = 0

    def age_ms(self, timestamp_ms: int, *, kept_ms: int) -> int:
        """Return how old a time is by the clock that makes it youngest, but not from the future.

        Args:
            timestamp_ms: By one of the clocks, or far from all of them.
            kept_ms: How long such things are kept: clocks left longer ago count only if the time
                lies ahead of the others.

        Returns:
            Milliseconds; below 0 if the time lies ahead of all clocks.
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
        """Return the earliest time that a clock shows: what has expired by it has by all.

        Args:
            kept_ms: As in age_ms.
        """
        times = [clock.now_ms for clock in self.former if clock.since_ms <= kept_ms]
        return min([self.now_ms, *times])


class WallClocks:
    """The clocks that have been seen; `look` every now and then."""

    __slots__ = ("_distance_ms", "_former", "_started_ms")

    # All distances (wall - monotonic) differ by more than JUMP_MS.

    def __init__(self, now_ms: int, monotonic_s: float) -> None:
        self._started_ms = _milliseconds(monotonic_s)
        self._distance_ms = now_ms - self._started_ms
        # Distance of each former clock -> when it was left, by the monotonic clock.
        self._former: dict[int, int] = {}

    def look(self, now_ms: int, monotonic_s: float) -> int:
        """Compare the clocks; return by how many milliseconds the wall clock jumped, mostly 0."""
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
        """Look, and return what all clocks show."""
        self.look(now_ms, monotonic_s)
        monotonic_ms = _milliseconds(monotonic_s)
        former = tuple(
            FormerClock(monotonic_ms + distance, monotonic_ms - left_ms)
            for distance, left_ms in self._former.items()
        )
        return ClockReading(now_ms, former, monotonic_ms - self._started_ms)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
