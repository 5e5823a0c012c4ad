"""How long the event loop is held: a selector that takes the time between its own calls.

What runs between the return of one `select` and the next call is one turn of the loop: every
callback that was ready. No callback can have held the loop for longer than its turn, so the
histogram of turns bounds holds from above, for two clock readings (0.1 us) and a count a turn.

A turn's wall time includes what the machine gave to other processes meanwhile. Where that matters
(tests on a busy machine) `with_cpu_time` also keeps the thread's own CPU time of each turn; that
costs 0.4 us more and leaves out time spent waiting for the disk.

    watch = LoopWatch()
    with asyncio.Runner(loop_factory=watch.new_event_loop) as runner: ...
    watch.holds_ms.largest
"""

from __future__ import annotations

import asyncio
import selectors
import time

from wirebroker.metrics import HOLD_BOUNDS_MS, Histogram


class LoopWatch:
    """The histograms of one event loop's holds.

    Attributes:
        holds_ms: Wall time of each turn.
        cpu_holds_ms: CPU time of the loop's thread in each turn; empty unless asked for.
        with_cpu_time: Whether it was.
    """

    __slots__ = ("cpu_holds_ms", "holds_ms", "with_cpu_time")

    def __init__(self, *, with_cpu_time: bool = False) -> None:
        self.with_cpu_time = with_cpu_time
        self.holds_ms = Histogram(HOLD_BOUNDS_MS)
        self.cpu_holds_ms = Histogram(HOLD_BOUNDS_MS)

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return a loop that is watched (a loop_factory for asyncio.Runner)."""
        return asyncio.SelectorEventLoop(_WatchedSelector(self))


class _WatchedSelector(selectors.DefaultSelector):
    """The system's selector, timing what happens between its calls."""

    def __init__(self, watch: LoopWatch) -> None:
        super().__init__()
        self._watch = watch
        # 0.0 until the first select has returned.
        self._began = 0.0
        self._cpu_began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        watch = self._watch
        if self._began:
            watch.holds_ms.record((time.perf_counter() - self._began) * 1000)
            if watch.with_cpu_time:
                watch.cpu_holds_ms.record((time.thread_time() - self._cpu_began) * 1000)
        events = super().select(timeout)
        self._began = time.perf_counter()
        if watch.with_cpu_time:
            self._cpu_began = time.thread_time()
        return events
