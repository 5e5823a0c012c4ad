"""The timer of all acquisition locks.

Source: Kafka's SharePartitionManager (its timer), AcquisitionLockTimerTask.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from wirebroker.base.clock import Clock
    from wirebroker.share.leader_share import LeaderShare

# Expired locks are released together.
_TICK_MS: Final = 10.0


class ShareLocks:
    """Releases the locks of share partitions when they have expired."""

    __slots__ = (
        "_clock",
        "_count",
        "_due",
        "_is_releasing",
        "_is_stopped",
        "_next_ms",
        "_on_timer",
        "_release",
        "_timer",
        "_timer_ms",
    )

    # _next_ms: when locks of each share partition expire; _due has an entry for each, ordered by
    # time. Entries with another time are outdated.

    def __init__(
        self,
        clock: Clock,
        release: Callable[[LeaderShare, float], Awaitable[object]],
        on_timer: Callable[[], object],
    ) -> None:
        """`release` receives a share partition and the time of locks.

        `on_timer` starts `release_expired`.
        """
        self._clock = clock
        self._release = release
        self._on_timer = on_timer
        self._next_ms: dict[LeaderShare, float] = {}
        self._due: list[tuple[float, int, LeaderShare]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0.0
        self._is_releasing = False
        self._is_stopped = False

    def now_ms(self) -> float:
        """Return the time of locks."""
        return self._clock.monotonic() * 1000

    def watch(self, share: LeaderShare) -> None:
        """Watch the timers of a share partition."""
        next_ms = share.state.timers.next_ms
        if next_ms is None or next_ms >= self._next_ms.get(share, float("inf")):
            return
        self._next_ms[share] = next_ms
        self._count += 1
        heappush(self._due, (next_ms, self._count, share))
        self._arm()

    def stop(self) -> None:
        """Release no more locks."""
        self._is_stopped = True
        self._disarm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._is_stopped or self._is_releasing or not self._due:
            return
        next_ms = self._due[0][0]
        if self._timer is not None and self._timer_ms <= next_ms:
            return
        self._disarm()
        self._timer_ms = next_ms
        delay_s = max(_TICK_MS, next_ms - self.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _take_due(self, now_ms: float) -> Iterator[LeaderShare]:
        while self._due and self._due[0][0] <= now_ms:
            next_ms, _, share = heappop(self._due)
            if self._next_ms.get(share) == next_ms:
                del self._next_ms[share]
                yield share

    async def release_expired(self) -> None:
        """Release the locks that have expired."""
        self._disarm()
        if self._is_releasing:
            return
        self._is_releasing = True
        try:
            now_ms = self.now_ms()
            # Each one once: the next run follows after a tick, whatever is left.
            for share in list(self._take_due(now_ms)):
                # A share partition that is removed has no locks.
                if share.is_active:
                    await self._release(share, now_ms)
                    self.watch(share)
        finally:
            self._is_releasing = False
            self._arm()
