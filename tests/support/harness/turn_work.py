"""How much the event loop does in a turn: calls of functions, lines of Python, or new memory.

A busy machine needs more time for the same work, but the work stays the same. `TurnWork` does not
see inside a function in C; `TurnPages` counts the new memory that such a function fills.
"""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, Any

from wirebroker.base.metric_field import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.net.loop_watch import LoopWatch


class _Turns(Histogram):
    """In place of the histogram that a watched loop notes its turns in."""

    __slots__ = ("_at_end",)

    def __init__(self, at_end: Callable[[], None]) -> None:
        super().__init__(())
        self._at_end = at_end

    def record(self, value: float) -> None:
        self._at_end()


class TurnWork:
    """Counts the calls in each turn of a watched loop.

    Attributes:
        largest: The most in one turn since `begin`.
        total: All of them.
    """

    def __init__(self, watch: LoopWatch) -> None:
        self.largest = 0
        self.total = 0
        self._count = 0
        watch.holds_ms = _Turns(self._end_turn)

    async def begin(self) -> None:
        """Count from now on; runs on the loop."""
        self.largest = self.total = self._count = 0
        sys.setprofile(self._note)

    async def begin_lines(self) -> None:
        """Count lines of Python instead from now on: loops that call nothing; runs on the loop."""
        self.largest = self.total = self._count = 0
        sys.settrace(self._trace)

    async def end(self) -> None:
        """Count no more; runs on the loop."""
        sys.setprofile(None)
        sys.settrace(None)
        self._end_turn()

    def _trace(self, _frame: Any, event: str, _value: object) -> Any:
        if event == "line":
            self._count += 1
        return self._trace

    def _note(self, _frame: Any, event: str, _called: object) -> None:
        if event == "call" or event == "c_call":  # noqa: PLR1714 - no tuple is searched
            self._count += 1

    def _end_turn(self) -> None:
        self.largest = max(self.largest, self._count)
        self.total += self._count
        self._count = 0


class TurnPages:
    """Counts the pages of memory that are used for the first time in each turn of a watched loop.

    Receiving or copying a MiB into new memory is 256 pages of 4 KiB.

    Attributes:
        largest: The most in one turn, after the first.
    """

    def __init__(self, watch: LoopWatch) -> None:
        self.largest = 0
        self._before: int | None = None
        watch.holds_ms = _Turns(self._end_turn)

    def _end_turn(self) -> None:
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        if self._before is not None:
            self.largest = max(self.largest, faults - self._before)
        self._before = faults
