"""The one place where time is read; everything else is handed a Clock. A leaf.

Wall time (`now_ms`) is what records and retention use and may jump; `monotonic` is what waits use.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Generator, Iterable
from contextvars import Context
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

# Work that may be interrupted wherever it yields.
Steps = Generator[None, None, T]


class Clock(Protocol):
    """Time as an argument, so that tests and simulation can move it."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 (wall time; may jump)."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds on the machine's monotonic clock."""
        return time.monotonic()


async def next_turn() -> None:
    """Let the event loop serve everybody else once: long work on the loop is cut by this."""
    await asyncio.sleep(0)  # noqa: TID251 - the one place


async def pause(seconds: float) -> None:
    """Wait on the loop's own clock (which a simulation moves)."""
    await asyncio.sleep(seconds)  # noqa: TID251 - the one place


def in_one_go(steps: Steps[T]) -> T:
    """Run interruptible work to its end without a break."""
    generator: Any = steps
    while True:
        try:
            next(generator)
        except StopIteration as end:
            result: T = end.value
            return result


def finish(steps: Steps[None]) -> None:
    """Do as in_one_go where nothing is returned: 0.2 us instead of 0.5, which hot paths notice."""
    for _ in steps:
        pass


# Elements that `collected` takes between two steps, and steps that `begun` runs without a slice.
_ELEMENTS_A_STEP: Final = 32
_STEPS_AT_ONCE: Final = 4


def collected(elements: Iterable[T]) -> Steps[list[T]]:
    """Return a list of what an iterable makes, in steps: a list comprehension that can be cut."""
    found: list[T] = []
    for count, each in enumerate(elements, 1):
        found.append(each)
        if count % _ELEMENTS_A_STEP == 0:
            yield
    return found


def begun(steps: Steps[T], clock: Clock) -> T | Awaitable[T]:
    """Return what a few steps come to, at once; of more, an awaitable that goes on in slices.

    A request that names little is served without a task, and one that names much holds nobody up.
    """
    generator: Any = steps
    try:
        for _ in range(_STEPS_AT_ONCE):
            next(generator)
    except StopIteration as end:
        result: T = end.value
        return result
    return Slices(clock).run(steps)


# A slice that is this short does not count.
_SHORT_S: Final = 0.000_2
# Slices of long work that begin in one turn of an event loop.
_SLICES_A_TURN: Final = 2


class _SliceLine:
    """The work of one event loop that waits for its next slice, in the order in which it came.

    However many clients send long requests, each turn of the loop begins few slices of them, and
    other clients wait only for these.
    """

    __slots__ = ("_is_due", "_loop", "_spent_s", "_waiting")

    # _is_due if anything waits or was spent: then `_begin_turn` is called in the next turn.

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._spent_s = 0.0
        self._is_due = False

    @property
    def is_long(self) -> bool:
        """Whether this turn has had its slices, or others wait for theirs."""
        return self._spent_s >= _SLICES_A_TURN * Slices.SECONDS or bool(self._waiting)

    def spend(self, seconds: float) -> None:
        """Note how long a slice of this turn was."""
        self._spent_s += seconds
        self._begin_turn_soon()

    def wait(self) -> asyncio.Future[None]:
        """Return a future that is done when the next slice may begin."""
        turn = self._loop.create_future()
        self._waiting.append(turn)
        self._begin_turn_soon()
        return turn

    def _begin_turn_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            # An empty context: the line outlives the request that is first in it.
            self._loop.call_soon(self._begin_turn, context=Context())

    def _begin_turn(self) -> None:
        self._is_due = False
        self._spent_s = 0.0
        begun = 0
        while self._waiting and begun < _SLICES_A_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # else it was given up
                turn.set_result(None)
                begun += 1
        if self._waiting:
            self._begin_turn_soon()


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _SliceLine] = WeakKeyDictionary()


def _line_of_this_loop() -> _SliceLine:
    loop = asyncio.get_running_loop()
    line = _lines.get(loop)
    if line is None:
        line = _lines[loop] = _SliceLine(loop)
    return line


class Slices:
    """Cut long work on the event loop: call `turn` after each item, or have steps `run`.

    Within a slice work goes on, at its end everybody else is served first. No callback may hold
    the loop for more than 20 ms; a slice lasts a quarter of that, and of all work that waits for
    its next slice a turn of the loop has two. Work that nobody waits for, of which several kinds
    may meet in a turn of the loop, takes shorter ones and does not stand in line.
    """

    SECONDS = 0.005
    BESIDE_OTHERS_SECONDS = 0.002

    __slots__ = ("_clock", "_end", "_has_begun", "_line", "_seconds", "_stands_in_line")

    def __init__(self, clock: Clock, seconds: float | None = None) -> None:
        """Begin the first slice.

        Args:
            clock: What measures them.
            seconds: How long each lasts, if not SECONDS; less where several are at work at once.
        """
        self._clock = clock
        self._seconds = self.SECONDS if seconds is None else seconds
        self._end = clock.monotonic() + self._seconds
        self._stands_in_line = seconds is None
        # Of the loop that it runs on, once it does.
        self._line: _SliceLine | None = None
        self._has_begun = False

    @property
    def is_over(self) -> bool:
        """Tell whether the slice has lasted long enough."""
        return self._clock.monotonic() >= self._end

    async def turn(self) -> None:
        """Go on at once while the slice lasts, else let the loop serve everybody else first."""
        if (not self._has_begun and self._begin()) or self._clock.monotonic() >= self._end:
            await self._next()

    async def run(self, steps: Steps[T]) -> T:
        """Run interruptible work to its end; quicker than a `turn` for each step."""
        monotonic = self._clock.monotonic
        generator: Any = steps
        if not self._has_begun and self._begin():
            await self._next()
        while True:
            try:
                next(generator)
            except StopIteration as end:
                self._spend()
                result: T = end.value
                return result
            if monotonic() >= self._end:
                await self._next()

    def _begin(self) -> bool:
        """Find the line; return whether the first slice has to wait in it."""
        self._has_begun = True
        if self._stands_in_line:
            self._line = _line_of_this_loop()
        return self._line is not None and self._line.is_long

    async def _next(self) -> None:
        self._spend()
        if self._line is None:
            await next_turn()
        else:
            await self._line.wait()
        self._end = self._clock.monotonic() + self._seconds

    def _spend(self) -> None:
        """Tell the line how long this slice was, unless it was very short."""
        seconds = min(self._clock.monotonic() - self._end, self._seconds) + self._seconds
        if self._line is not None and seconds > _SHORT_S:
            self._line.spend(seconds)
