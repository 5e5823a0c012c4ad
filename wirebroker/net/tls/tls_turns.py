"""Steps of handshakes, one dear one in each turn of a loop: many that connect hold nobody up.

Addresses take turns, and so do first steps and later ones: a client that has responded once is
through soon. Where many wait for their first step the listeners accept no more (`is_full`):
newcomers wait in the kernel's backlog, as behind Kafka's acceptor. Peers that have left cost
little; a turn sees to several of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.net.bounds.fair_line import FairLine

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    # Returns whether it has cost what a step of a handshake does.
    Step: TypeAlias = "Callable[[], bool]"

# What is received and sent at a time, four records.
PIECE_BYTES: Final = 64 << 10
# Those that wait for their first step, which takes some milliseconds; and how many of them are left
# when listeners go on.
MOST_WAITING: Final = 256
_FEW_WAITING: Final = 128
# Steps of peers that have left, in one turn.
CHEAP_STEPS: Final = 16


class TlsTurns:
    """What all connections of a loop share.

    Attributes:
        loop: Whose turns they are.
        area: What is received goes through it, within one call.
    """

    __slots__ = ("_first", "_is_first_next", "_is_scheduled", "_later", "_on_room", "area", "loop")

    # _is_scheduled as long as one waits.

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.area = memoryview(bytearray(PIECE_BYTES))
        self._first: FairLine[Step] = FairLine()
        self._later: FairLine[Step] = FairLine()
        self._is_first_next = False
        self._is_scheduled = False
        self._on_room: list[Callable[[], None]] = []

    @property
    def is_full(self) -> bool:
        """Whether nobody should be accepted for now."""
        return len(self._first) >= MOST_WAITING

    def when_there_is_room(self, callback: Callable[[], None]) -> None:
        """Call back once when few wait."""
        self._on_room.append(callback)

    def wait(self, step: Step, *, address: str, is_first: bool) -> None:
        """Call back in a turn of its own."""
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
        """Return the next: of both lines in turns, where there are both."""
        is_first = bool(self._first) and (self._is_first_next or not self._later)
        self._is_first_next = not is_first
        return (self._first if is_first else self._later).take()
