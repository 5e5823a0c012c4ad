"""The broker's event loop: asyncio's, with its own poller (net/sockets/poller.py) and a stopwatch.

What runs between the end of one wait and the beginning of the next is one turn of the loop: every
socket and callback that was ready. No callback can have held the loop for longer than its turn, so
the histogram of turns bounds holds from above, for two clock readings (0.1 us) and a count a turn.

A turn's wall time includes what the machine gave to other processes meanwhile. Where that matters
(tests on a busy machine) `with_cpu_time` also keeps the thread's own CPU time of each turn; that
costs 0.4 us more and leaves out time spent waiting for the disk.

    watch = LoopWatch()
    with asyncio.Runner(loop_factory=watch.new_event_loop) as runner: ...
    watch.holds_ms.largest
"""

from __future__ import annotations

import asyncio
import select
import selectors
import time
from typing import TYPE_CHECKING

from wirebroker.base.metric_field import Histogram
from wirebroker.base.metrics import HOLD_BOUNDS_MS, Metrics
from wirebroker.net.sockets.poller import Poller

if TYPE_CHECKING:
    import collections
    from selectors import EpollSelector as _EpollSelector
else:  # named where there is none, too; nothing is made of it there
    _EpollSelector = getattr(selectors, "EpollSelector", selectors.DefaultSelector)


class LoopWatch:
    """The histograms of one event loop's holds.

    Attributes:
        holds_ms: Wall time of each turn; the broker's metric.
        cpu_holds_ms: CPU time of the loop's thread in each turn; empty unless asked for.
        with_cpu_time: Whether it was.
    """

    __slots__ = ("cpu_holds_ms", "holds_ms", "with_cpu_time")

    def __init__(self, metrics: Metrics | None = None, *, with_cpu_time: bool = False) -> None:
        self.with_cpu_time = with_cpu_time
        self.holds_ms = (metrics or Metrics()).loop_hold_ms
        self.cpu_holds_ms = Histogram(HOLD_BOUNDS_MS)

    def new_event_loop(self) -> asyncio.SelectorEventLoop:
        """Return a loop that is watched (a loop_factory for asyncio.Runner).

        Where there is no epoll it is asyncio's own, which serves sockets itself, and unwatched.
        """
        if not hasattr(select, "epoll"):
            return asyncio.SelectorEventLoop()
        return PolledLoop(_WatchedSelector(self))


class _WatchedSelector(_EpollSelector):
    """The loop's selector: sleeps in the loop's poller and serves its sockets.

    Attributes:
        loop: Set by the loop.
    """

    loop: PolledLoop

    def __init__(self, watch: LoopWatch) -> None:
        super().__init__()
        self._watch = watch
        # 0.0 until the first wait has returned.
        self._began = 0.0
        self._cpu_began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve sockets until the loop itself has something to do.

        A turn of the loop around every event would cost another 2.5 us where they come singly.
        """
        loop, poller = self.loop, self.loop.poller
        timers = loop.timers
        end = None if timeout is None else time.perf_counter() + timeout
        while True:
            self._record()
            events = poller.wait(timeout)
            self._began = poller.woken_s = time.perf_counter()
            if self._watch.with_cpu_time:
                self._cpu_began = time.thread_time()
            if poller.serve(events):
                return super().select(0)
            if not events or loop.is_wanted or loop.timers != timers:
                return []
            if end is not None:
                timeout = end - time.perf_counter()  # serving has taken some of it
                if timeout <= 0:
                    return []

    def _record(self) -> None:
        watch = self._watch
        if self._began:
            watch.holds_ms.record((time.perf_counter() - self._began) * 1000)
            if watch.with_cpu_time:
                watch.cpu_holds_ms.record((time.thread_time() - self._cpu_began) * 1000)

    def close(self) -> None:
        super().close()
        self.loop.poller.close()


class PolledLoop(asyncio.SelectorEventLoop):
    """An event loop that serves sockets before everything else in a turn.

    Attributes:
        poller: Where they are watched.
    """

    # Of BaseEventLoop, the same in Python 3.11 to 3.14: callbacks and timers.
    _ready: collections.deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool

    def __init__(self, selector: _WatchedSelector) -> None:
        super().__init__(selector)
        selector.loop = self
        self.poller = Poller(
            report=self.call_exception_handler,
            monotonic=time.monotonic,
            guest=selector.fileno(),
        )

    @property
    def is_wanted(self) -> bool:
        """Whether callbacks wait for their turn, or the loop is to stop."""
        return bool(self._ready) or self._stopping

    @property
    def timers(self) -> int:
        """How many timers there are; only a turn of the loop takes one away."""
        return len(self._scheduled)
