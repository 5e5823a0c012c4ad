"""The timer of all acquisition locks.

Source: Kafka's SharePartitionManager (its timer), AcquisitionLockTimerTask.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.share.leader_share import LeaderShare

# Expired locks are released together.
_TICK_MS: Final = 10.0


class ShareLocks:
    """Calls back for share partitions whose locks have expired."""

    __slots__ = ("_clock", "_is_stopped", "_locked", "_on_expired", "_timer", "_timer_ms")

    def __init__(self, clock: Clock, on_expired: Callable[[LeaderShare, float], None]) -> None:
        """`on_expired` receives a share partition and the time of locks."""
        self._clock = clock
        self._on_expired = on_expired
        # Those with timers, in the order of their first lock.
        self._locked: dict[LeaderShare, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0.0
        self._is_stopped = False

    def now_ms(self) -> float:
        """Return the time of locks."""
        return self._clock.monotonic() * 1000

    def watch(self, share: LeaderShare) -> None:
        """Watch the timers of a share partition."""
        next_ms = share.state.timers.next_ms
        if next_ms is not None:
            self._locked[share] = None
            self._arm(next_ms)

    def stop(self) -> None:
        """Release no more locks."""
        self._is_stopped = True
        self._disarm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, next_ms: float) -> None:
        if self._is_stopped or (self._timer is not None and self._timer_ms <= next_ms):
            return
        self._disarm()
        self._timer_ms = next_ms
        delay_s = max(_TICK_MS, next_ms - self.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.release_expired)

    def release_expired(self) -> None:
        """Call back for the share partitions whose locks have expired."""
        self._disarm()
        now_ms = self.now_ms()
        earliest: float | None = None
        for share in tuple(self._locked):
            timers = share.state.timers
            if timers.next_ms is not None and timers.next_ms <= now_ms:
                self._on_expired(share, now_ms)
            if timers.next_ms is None or not share.is_active:
                del self._locked[share]
            elif earliest is None or timers.next_ms < earliest:
                earliest = timers.next_ms
        if earliest is not None:
            self._arm(earliest)
