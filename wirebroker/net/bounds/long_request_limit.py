"""Limit for long requests that are served at the same time.

Decoding may take 100 times a request's bytes. Requests wait for room, addresses taking turns
(fair_queue.py); meanwhile only their frames use memory, which memory_budget.py limits.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from wirebroker.net.bounds.fair_queue import FairQueue

# Total frame size of the requests being served; a longer request is served alone.
MOST_BYTES: Final = 2 << 20


class _Waiting(NamedTuple):
    turn: asyncio.Future[None]
    size: int


class LongRequestLimit:
    """The limit for one kind of long requests."""

    __slots__ = ("_line", "_next", "_room")

    # _next was first in the line, and there is no room for it yet.

    def __init__(self) -> None:
        self._line: FairQueue[_Waiting] = FairQueue()
        self._next: _Waiting | None = None
        self._room = MOST_BYTES

    async def enter(self, address: str, size: int) -> None:
        """Wait for room for a frame of `size` bytes; call `leave` when the response is ready."""
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
        """Release the room."""
        self._room += min(size, MOST_BYTES)
        self._begin()

    def _begin(self) -> None:
        while self._next is not None or self._line:
            waiting = self._next or self._line.take()
            self._next = None
            if waiting.turn.done():  # it was canceled
                continue
            if waiting.size > self._room:
                self._next = waiting
                return
            self._room -= waiting.size
            waiting.turn.set_result(None)
