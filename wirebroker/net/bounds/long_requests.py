"""How many long requests are served at a time: few, since each may take 100 times its bytes.

A request of 1.6 MB that names 400,000 partitions takes 200 MiB until it is answered. Requests wait
for room in a line in which addresses take turns (fair_line.py); meanwhile only their frames are in
memory, which are counted (memory_budget.py).
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from wirebroker.net.bounds.fair_line import FairLine

# Of the frames of requests that are served; a longer one is served alone.
MOST_BYTES: Final = 2 << 20


class _Waiting(NamedTuple):
    turn: asyncio.Future[None]
    size: int


class LongRequests:
    """The long requests of one kind."""

    __slots__ = ("_line", "_next", "_room")

    # _next is the first in the line, taken out because there was no room for it yet.

    def __init__(self) -> None:
        self._line: FairLine[_Waiting] = FairLine()
        self._next: _Waiting | None = None
        self._room = MOST_BYTES

    async def enter(self, address: str, size: int) -> None:
        """Wait until there is room; call `leave` when the request is answered.

        Args:
            address: The peer's.
            size: Of the frame, in bytes.
        """
        size = min(size, MOST_BYTES)
        if self._next is None and not self._line and size <= self._room:
            self._room -= size
            return
        turn = asyncio.get_running_loop().create_future()
        self._line.add(address, _Waiting(turn, size))
        self._begin()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(size)
            raise

    def leave(self, size: int) -> None:
        """Give room back."""
        self._room += min(size, MOST_BYTES)
        self._begin()

    def _begin(self) -> None:
        while self._next is not None or self._line:
            waiting = self._next or self._line.take()
            self._next = None
            if waiting.turn.done():  # it was given up
                continue
            if waiting.size > self._room:
                self._next = waiting
                return
            self._room -= waiting.size
            waiting.turn.set_result(None)
