"""The broker's event loop: asyncio's, with its own poller (net/sockets/poller.py) and a stopwatch.

A turn is the time between two waits, in which all ready sockets and callbacks run. No callback can
hold the loop for longer.

A turn's wall time includes time of other processes. On a busy machine `with_cpu_time` also records
the thread's CPU time, which excludes waits for the disk.
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
else:  # the base class on other systems, where it is unused
    _EpollSelector = getattr(selectors, "EpollSelector", selectors.DefaultSelector)


class LoopWatch:
    """Histograms of one event loop's turns."""

    __slots__ = ("cpu_holds_ms", "holds_ms", "with_cpu_time")

    def __init__(self, metrics: Metrics | None = None, *, with_cpu_time: bool = False) -> None:
        self.with_cpu_time = with_cpu_time
        self.holds_ms = (metrics or Metrics()).loop_hold_ms
        self.cpu_holds_ms = Histogram(HOLD_BOUNDS_MS)

    def new_event_loop(self) -> asyncio.SelectorEventLoop:
        """Return a watched loop, or without epoll asyncio's own, unwatched."""
        if not hasattr(select, "epoll"):
            return asyncio.SelectorEventLoop()
        return PolledLoop(_WatchedSelector(self))


class _WatchedSelector(_EpollSelector):
    """The loop's selector, which waits in the loop's poller and serves its sockets."""

    loop: PolledLoop  # set by the loop

    def __init__(self, watch: LoopWatch) -> None:
        super().__init__()
        self._watch = watch
        # 0.0 until the first wait has returned.
        self._began = 0.0
        self._cpu_began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve sockets until the loop itself has work.

        A turn of the loop for each event would be slower.
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
                timeout = end - time.perf_counter()  # serving took some of it
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
    """Event loop that serves sockets first in each turn."""

    # Private attributes of BaseEventLoop, unchanged in Python 3.11 to 3.14.
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
        """Whether callbacks are ready, or the loop is to stop."""
        return bool(self._ready) or self._stopping

    @property
    def timers(self) -> int:
        """Number of timers; only a turn of the loop removes any."""
        return len(self._scheduled)
