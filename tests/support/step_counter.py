"""Counts what the event loop does between two waits: lines of the program's own code, not time.

    counter = StepCounter()
    with counter:
        ...                    # requests; only this thread's lines count
    counter.longest_turn, counter.total

A line counts each time that it runs, an element of a comprehension too. What runs inside Python's
own functions is one line, however long it takes, and what other threads do does not hold the loop.
`CountedClock` is the time of a broker whose work takes a microsecond a line, so that its slices
end after the same work on every machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import wirebroker
from wirebroker import loop_watch
from wirebroker.clock import SystemClock

if TYPE_CHECKING:
    from types import CodeType, FrameType

_OURS = str(Path(wirebroker.__file__).parent)
_S_A_STEP = 1e-6


class StepCounter:
    """Counts lines while it is entered.

    Attributes:
        longest_turn: The most lines of one turn of the loop.
        total: All lines.
    """

    def __init__(self) -> None:
        self.longest_turn = 0
        self.total = 0
        self._turn = 0
        self._is_counted: dict[CodeType, bool] = {}

    def __enter__(self) -> StepCounter:
        self.longest_turn = self.total = self._turn = 0
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._end_turn()

    @property
    def seconds(self) -> float:
        """How long all of it has taken if a line takes a microsecond."""
        return (self.total + self._turn) * _S_A_STEP

    def _end_turn(self) -> None:
        self.longest_turn = max(self.longest_turn, self._turn)
        self.total += self._turn
        self._turn = 0

    def _on_call(self, frame: FrameType, event: str, argument: object) -> Any:
        del event, argument
        code = frame.f_code
        is_counted = self._is_counted.get(code)
        if is_counted is None:
            is_counted = self._is_counted[code] = code.co_filename.startswith(_OURS)
        if not is_counted:
            return None
        if code is _END_OF_TURN:
            self._end_turn()
            return None
        return self._on_line

    def _on_line(self, frame: FrameType, event: str, argument: object) -> Any:
        del frame, argument
        if event == "line":
            self._turn += 1
        return self._on_line


class CountedClock(SystemClock):
    """The machine's clock, whose monotonic time goes by counted lines."""

    __slots__ = ("_begin", "_counter")

    def __init__(self, counter: StepCounter) -> None:
        self._begin = super().monotonic()
        self._counter = counter

    def monotonic(self) -> float:
        """Return seconds on a clock that goes on with each line."""
        return self._begin + self._counter.seconds


# The loop records a turn where it begins to wait.
_END_OF_TURN = loop_watch._WatchedSelector._record.__code__
