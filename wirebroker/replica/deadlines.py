"""Deadlines that are rarely reached: all within the same tenth of a second share one timer.

An event loop timer per wait would cost 5 us of CPU.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_PER_SECOND = 10


class Deadline(NamedTuple):
    """The handle that `Deadlines.add` returns."""

    tick: int
    on_time: Callable[[], None]


class Deadlines:
    """Callbacks by tick of the loop's clock."""

    __slots__ = ("_by_tick", "_timers")

    def __init__(self) -> None:
        self._by_tick: dict[int, dict[Callable[[], None], None]] = {}
        # Of each tick that has not begun.
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_tick.values()))

    def add(self, on_time: Callable[[], None], *, delay_s: float) -> Deadline:
        """Call `on_time` once, after `delay_s` or up to a tenth of a second later."""
        loop = asyncio.get_running_loop()
        tick = int((loop.time() + delay_s) * _PER_SECOND) + 1
        callbacks = self._by_tick.get(tick)
        if callbacks is None:
            callbacks = self._by_tick[tick] = {}
            self._timers[tick] = loop.call_at(tick / _PER_SECOND, self._end, tick)
        callbacks[on_time] = None
        return Deadline(tick, on_time)

    def discard(self, deadline: Deadline) -> None:
        """Cancel a deadline."""
        callbacks = self._by_tick.get(deadline.tick)
        if callbacks is None:
            return
        callbacks.pop(deadline.on_time, None)
        if not callbacks and deadline.tick in self._timers:
            self._timers.pop(deadline.tick).cancel()
            del self._by_tick[deadline.tick]

    def _end(self, tick: int) -> None:
        del self._timers[tick]
        callbacks = self._by_tick[tick]
        while callbacks:
            # A callback may discard others.
            on_time = next(iter(callbacks))
            del callbacks[on_time]
            on_time()
        del self._by_tick[tick]
