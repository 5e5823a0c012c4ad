"""Numbers of partitions or groups over time, compactly: 8 bytes for each number of a sample.

Each partition has a slot, its index in all arrays; the partitions of a topic are neighbors, so the
total of a topic is one sum. A number of -1 is unknown.

    laws: samples are in the order of their times; an array is never changed once it is in a ring;
          a slot that an array does not reach is unknown in it; later arrays are not shorter
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

UNKNOWN: Final = -1
# The newest samples are all kept, of the older ones one a minute.
_RECENT: Final = 60
_OLDER: Final = 60
_OLDER_EVERY_MS: Final = 60_000
# Of one ring, 16 MiB; of that many slots, fewer samples are kept.
_MOST_NUMBERS: Final = 2 << 20
_FEWEST_SAMPLES: Final = 4


class SlotNumbers(NamedTuple):
    """The numbers of all slots at a time (ms since 1970)."""

    taken_ms: int
    numbers: array[int]

    def number(self, slot: int) -> int | None:
        """Return a slot's number, or None."""
        if slot >= len(self.numbers):
            return None
        number = self.numbers[slot]
        return None if number == UNKNOWN else number

    def total(self, first: int, count: int) -> int | None:
        """Return the sum of neighbors, or None if one of them is unknown."""
        if first + count > len(self.numbers) or count == 0:
            return None
        numbers = self.numbers[first : first + count]
        return None if min(numbers) == UNKNOWN else sum(numbers)


class SampleRing:
    """The samples of some minutes in full, and one a minute of the hour before."""

    __slots__ = ("_older", "_recent")

    def __init__(self) -> None:
        self._recent: deque[SlotNumbers] = deque()
        self._older: deque[SlotNumbers] = deque()

    def __iter__(self) -> Iterator[SlotNumbers]:
        yield from self._older
        yield from self._recent

    def add(self, sample: SlotNumbers) -> None:
        """Add the newest sample."""
        assert not self._recent or sample.taken_ms >= self._recent[-1].taken_ms
        self._recent.append(sample)
        most = max(_FEWEST_SAMPLES, _MOST_NUMBERS // max(1, len(sample.numbers)))
        while len(self._recent) > min(_RECENT, most):
            self._age(self._recent.popleft())
        while len(self._older) > min(_OLDER, max(0, most - len(self._recent))):
            self._older.popleft()

    def _age(self, sample: SlotNumbers) -> None:
        is_due = not self._older or (sample.taken_ms - self._older[-1].taken_ms >= _OLDER_EVERY_MS)
        if is_due:
            self._older.append(sample)

    def clear(self) -> None:
        """Drop all samples."""
        self._recent.clear()
        self._older.clear()

    @property
    def latest(self) -> SlotNumbers | None:
        """The newest sample, or None."""
        return self._recent[-1] if self._recent else None

    def before(self, age_ms: int) -> SlotNumbers | None:
        """Return the newest sample that is `age_ms` older than the latest one, else the oldest.

        None if there are fewer than two.
        """
        latest = self.latest
        if latest is None or len(self._recent) + len(self._older) < 2:
            return None
        for sample in reversed(self._recent):
            if latest.taken_ms - sample.taken_ms >= age_ms:
                return sample
        return self._older[-1] if self._older else self._recent[0]

    def window(self, age_ms: int) -> Window:
        """Return all samples, for rates over `age_ms`, or less if they are younger."""
        return Window((*self._older, *self._recent), self.before(age_ms))


def rate_of(
    before: SlotNumbers | None, after: SlotNumbers | None, first: int, count: int
) -> float | None:
    """Return the growth of neighbors' total a second; None if it is unknown or the total fell."""
    if before is None or after is None or after.taken_ms <= before.taken_ms:
        return None
    total_before, total_after = before.total(first, count), after.total(first, count)
    if total_before is None or total_after is None or total_after < total_before:
        return None
    return (total_after - total_before) * 1000 / (after.taken_ms - before.taken_ms)


class Window(NamedTuple):
    """The samples of a ring, and the one with which the latest is compared for rates."""

    samples: tuple[SlotNumbers, ...] = ()
    before: SlotNumbers | None = None

    @property
    def latest(self) -> SlotNumbers | None:
        """The newest sample, or None."""
        return self.samples[-1] if self.samples else None

    def rate(self, first: int, count: int) -> float | None:
        """Return the growth of neighbors' total a second; see `rate_of`.

        New slots are compared with the first sample that has them.
        """
        before = self.before
        if before is not None and len(before.numbers) < first + count:
            index = bisect_left(self.samples, first + count, key=_slot_count)
            before = self.samples[index] if index < len(self.samples) else None
        return rate_of(before, self.latest, first, count)


def _slot_count(sample: SlotNumbers) -> int:
    return len(sample.numbers)


class ReachedTime(NamedTuple):
    """When a partition's end passed an offset; `is_latest` if it was at that time or before."""

    time_ms: float
    is_latest: bool


def time_reached(samples: tuple[SlotNumbers, ...], slot: int, offset: int) -> ReachedTime | None:
    """Estimate when the record at `offset` was appended, from samples of end offsets.

    None if the end has not passed it, or is unknown.
    """
    index = bisect_right(samples, offset, key=lambda sample: _end_or_zero(sample, slot))
    if index == len(samples):
        return None
    after = samples[index]
    end_after = after.number(slot)
    if end_after is None:
        return None
    end_before = samples[index - 1].number(slot) if index else None
    if end_before is None:
        return ReachedTime(after.taken_ms, is_latest=True)
    before_ms = samples[index - 1].taken_ms
    share = (offset + 1 - end_before) / (end_after - end_before)
    return ReachedTime(before_ms + share * (after.taken_ms - before_ms), is_latest=False)


def _end_or_zero(sample: SlotNumbers, slot: int) -> int:
    number = sample.number(slot)
    return -1 if number is None else number
