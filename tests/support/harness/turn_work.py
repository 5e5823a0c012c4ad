"""The work of each turn of the event loop: function calls, lines of Python, or new memory.

Unlike time, it does not depend on other load. `TurnWork` does not see inside C functions;
`TurnPages` counts the new memory that they fill.
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
    """Replacement for the histogram that a watched loop updates after each turn."""

    __slots__ = ("_at_end",)

    def __init__(self, at_end: Callable[[], None]) -> None:
        super().__init__(())
        self._at_end = at_end

    def record(self, value: float) -> None:
        self._at_end()


class TurnWork:
    """Counter of the calls in each turn of a watched loop.

    Attributes:
        largest: The most in one turn since `begin`.
        total: The sum of all turns.
    """

    def __init__(self, watch: LoopWatch) -> None:
        self.largest = 0
        self.total = 0
        self._count = 0
        watch.holds_ms = _Turns(self._end_turn)

    async def begin(self) -> None:
        """Start to count calls; must run on the loop."""
        self.largest = self.total = self._count = 0
        sys.setprofile(self._note)

    async def begin_lines(self) -> None:
        """Start to count lines, for loops without calls; must run on the loop."""
        self.largest = self.total = self._count = 0

        # Twice as fast as a method, which would be bound for each line.
        def trace(_frame: Any, event: str, _value: object) -> Any:
            if event == "line":
                self._count += 1
            return trace

        sys.settrace(trace)

    async def end(self) -> None:
        """Stop counting; must run on the loop."""
        sys.setprofile(None)
        sys.settrace(None)
        self._end_turn()

    def _note(self, _frame: Any, event: str, _called: object) -> None:
        if event == "call" or event == "c_call":  # noqa: PLR1714 - no tuple is searched
            self._count += 1

    def _end_turn(self) -> None:
        self.largest = max(self.largest, self._count)
        self.total += self._count
        self._count = 0


class TurnPages:
    """Counter of the pages of memory that are first used in each turn of a watched loop.

    A MiB of new memory is 256 pages of 4 KiB.

    Attributes:
        largest: The most in one turn, except the first.
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
