"""A closable semaphore that serves waiters in order."""

from __future__ import annotations

import asyncio
from collections import deque


class Places:
    """Places for requests in flight.

    Attributes:
        taken: Places in use, including those of waiters that have not run since.
    """

    __slots__ = ("_is_closed", "_most", "_waiting", "taken")

    # 0 <= taken <= _most until closed. Waiters exist only while no place is free.

    def __init__(self, most: int) -> None:
        assert most > 0
        self._most = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False
        self.taken = 0

    async def take(self, timeout_s: float) -> None:
        """Take a place, which must be given back; wait for it if necessary.

        Raises:
            TimeoutError: None was free in time.
        """
        if self._is_closed or (not self._waiting and self.taken < self._most):
            self.taken += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await place
        except BaseException:
            if place in self._waiting:
                self._waiting.remove(place)
            elif not place.cancelled():
                self.give_back()  # it was granted just before the timeout
            raise

    def give_back(self) -> None:
        """Give a place to the longest waiter, if any."""
        assert self.taken > 0
        self.taken -= 1
        while self._waiting and (self.taken < self._most or self._is_closed):
            place = self._waiting.popleft()
            if not place.done():
                self.taken += 1
                place.set_result(None)

    def close(self) -> None:
        """Let all waiters through, now and later; they must check for the end."""
        self._is_closed = True
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                self.taken += 1
                place.set_result(None)
