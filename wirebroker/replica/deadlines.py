"""Deadlines that are nearly never reached: thousands of waits share a few timers.

A timer of the event loop's own for each of them costs 5 us of CPU, to be made and cancelled. Here
those that end within the same tenth of a second share one, and are called back at its end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_PER_SECOND = 10


class Deadline(NamedTuple):
    """What `Deadlines.add` has noted, to be given back to `discard`."""

    tick: int
    on_time: Callable[[], None]


class Deadlines:
    """Callbacks by when they are due, in ticks of the loop's clock."""

    __slots__ = ("_by_tick",)

    def __init__(self) -> None:
        # Each key has a timer, which takes it out; the callbacks in the order in which they came.
        self._by_tick: dict[int, dict[Callable[[], None], None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_tick.values()))

    def add(self, on_time: Callable[[], None], *, delay_s: float) -> Deadline:
        """Have `on_time` called after `delay_s`, at most a tenth of a second later, once."""
        loop = asyncio.get_running_loop()
        tick = int((loop.time() + delay_s) * _PER_SECOND) + 1
        due = self._by_tick.get(tick)
        if due is None:
            due = self._by_tick[tick] = {}
            loop.call_at(tick / _PER_SECOND, self._end, tick)
        due[on_time] = None
        return Deadline(tick, on_time)

    def discard(self, deadline: Deadline) -> None:
        """Call it no more, if it is still to be called."""
        due = self._by_tick.get(deadline.tick)
        if due is not None:
            due.pop(deadline.on_time, None)

    def _end(self, tick: int) -> None:
        due = self._by_tick[tick]
        while due:
            # One may discard others as it is called.
            on_time = next(iter(due))
            del due[on_time]
            on_time()
        del self._by_tick[tick]
