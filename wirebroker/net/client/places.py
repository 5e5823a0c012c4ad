"""A bounded number of places, given to those who wait in the order in which they came.

Unlike asyncio's semaphore it can be closed: then nobody waits any more.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Places:
    """Places for requests in flight.

    Attributes:
        taken: How many are taken, those included that were promised to somebody who has not run
            since.
    """

    __slots__ = ("_is_closed", "_most", "_waiting", "taken")

    # 0 <= taken <= _most. Nobody waits while a place is free, nor when they are closed.

    def __init__(self, most: int) -> None:
        assert most > 0
        self._most = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False
        self.taken = 0

    async def take(self, timeout_s: float) -> None:
        """Take a place, which must be given back; wait for it if need be.

        Raises:
            TimeoutError: None was free in time; nothing is taken.
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
                self.give_back()  # it was promised just when we gave up
            raise

    def give_back(self) -> None:
        """Give a place to whoever waits longest, if anybody does."""
        assert self.taken > 0
        self.taken -= 1
        while self._waiting and (self.taken < self._most or self._is_closed):
            place = self._waiting.popleft()
            if not place.done():
                self.taken += 1
                place.set_result(None)

    def close(self) -> None:
        """Let everybody through, now and later: who comes through finds out that it is over."""
        self._is_closed = True
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                self.taken += 1
                place.set_result(None)
