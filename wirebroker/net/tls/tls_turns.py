"""Scheduling of TLS handshakes: one expensive step, of some milliseconds, per turn of the loop.

Addresses take turns, and so do first and later steps: a client that has responded once finishes
soon. While many wait for their first step the listeners stop accepting, as Kafka's acceptor does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.net.bounds.fair_queue import FairQueue

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    # Returns whether the step was expensive.
    Step: TypeAlias = "Callable[[], bool]"

# Received and sent at a time: four records.
PIECE_BYTES: Final = 64 << 10
# First steps that wait, when listeners stop and when they continue.
MOST_WAITING: Final = 256
_FEW_WAITING: Final = 128
# Steps of disconnected peers per turn.
CHEAP_STEPS: Final = 16


class TlsTurns:
    """State shared by all connections of a loop; `area` is receive memory within a call."""

    __slots__ = ("_first", "_is_first_next", "_is_scheduled", "_later", "_on_room", "area", "loop")

    # _is_scheduled <=> a step waits.

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.area = memoryview(bytearray(PIECE_BYTES))
        self._first: FairQueue[Step] = FairQueue()
        self._later: FairQueue[Step] = FairQueue()
        self._is_first_next = False
        self._is_scheduled = False
        self._on_room: list[Callable[[], None]] = []

    @property
    def is_full(self) -> bool:
        """Whether listeners should stop accepting."""
        return len(self._first) >= MOST_WAITING

    def when_there_is_room(self, callback: Callable[[], None]) -> None:
        """Call back once when few wait."""
        self._on_room.append(callback)

    def wait(self, step: Step, *, address: str, is_first: bool) -> None:
        """Call a step in a later turn."""
        (self._first if is_first else self._later).add(address, step)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled and (self._first or self._later):
            self._is_scheduled = True
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        self._is_scheduled = False
        try:
            for _ in range(CHEAP_STEPS):
                if not (self._first or self._later) or self._take()():
                    break
        finally:
            self._schedule()
            if self._on_room and len(self._first) <= _FEW_WAITING:
                waiting, self._on_room = self._on_room, []
                for callback in waiting:
                    self.loop.call_soon(callback)

    def _take(self) -> Step:
        is_first = bool(self._first) and (self._is_first_next or not self._later)
        self._is_first_next = not is_first
        return (self._first if is_first else self._later).take()
