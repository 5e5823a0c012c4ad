"""A closable semaphore that serves waiters in order."""

from __future__ import annotations

import asyncio
from collections import deque


class FairSemaphore:
    """Places for requests in flight."""

    __slots__ = ("_is_closed", "_limit", "_waiting", "taken")

    # 0 <= taken <= _limit until closed. Waiters exist only while no place is free.

    def __init__(self, most: int) -> None:
        assert most > 0
        self._limit = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False
        self.taken = 0

    async def take(self, timeout_s: float) -> None:
        """Wait for a place, which must be given back.

        Raises:
            TimeoutError: None was free in time.
        """
        if self._is_closed or (not self._waiting and self.taken < self._limit):
            self.taken += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await waiter
        except BaseException:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not waiter.cancelled():
                self.give_back()  # it was granted just before the timeout
            raise

    def give_back(self) -> None:
        """Give a place to the longest waiter, if any."""
        assert self.taken > 0
        self.taken -= 1
        while self._waiting and (self.taken < self._limit or self._is_closed):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.taken += 1
                waiter.set_result(None)

    def close(self) -> None:
        """Let all waiters through, now and later; they must check for the end."""
        self._is_closed = True
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.taken += 1
                waiter.set_result(None)
