"""Steps of handshakes, one in each turn of a loop: many that connect at once hold nobody up."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

# What is received and sent at a time, four records.
PIECE_BYTES: Final = 64 << 10


class TlsTurns:
    """What all connections of a loop share.

    Attributes:
        loop: Whose turns they are.
        area: What is received goes through it, within one call.
    """

    __slots__ = ("_waiting", "area", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.area = memoryview(bytearray(PIECE_BYTES))
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, step: Callable[[], None]) -> None:
        """Call back in a turn of its own."""
        self._waiting.append(step)
        if len(self._waiting) == 1:
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        try:
            self._waiting[0]()
        finally:
            self._waiting.popleft()
            if self._waiting:
                self.loop.call_soon(self._next)
