"""The clock, and time slices for long work on the event loop.

Code that needs the time receives a Clock. Records and retention use wall time; durations use
`monotonic`. Timeouts of waiting requests use the loop's clock.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Generator, Iterable
from contextvars import Context
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

# Work that can be interrupted at each yield.
Steps = Generator[None, None, T]


class Clock(Protocol):
    """Source of time."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 (wall time, which may jump)."""
        ...

    def monotonic(self) -> float:
        """Return seconds of a clock that never goes back."""
        ...


class SystemClock:
    """The operating system's clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()


async def next_turn() -> None:
    """Let the event loop run other work once."""
    await asyncio.sleep(0)  # noqa: TID251


async def pause(seconds: float) -> None:
    """Wait on the loop's clock, which a simulation controls."""
    await asyncio.sleep(seconds)  # noqa: TID251


def in_one_go(steps: Steps[T]) -> T:
    """Run steps without a break."""
    generator: Any = steps
    while True:
        try:
            next(generator)
        except StopIteration as end:
            result: T = end.value
            return result


def finish(steps: Steps[None]) -> None:
    """Run steps without a result, faster than `in_one_go`."""
    for _ in steps:
        pass


# Elements per step of `collected`, and steps that `begun` runs without a slice.
_ELEMENTS_A_STEP: Final = 32
_STEPS_AT_ONCE: Final = 4


def collected(elements: Iterable[T]) -> Steps[list[T]]:
    """List the elements in steps."""
    items: list[T] = []
    for count, element in enumerate(elements, 1):
        items.append(element)
        if count % _ELEMENTS_A_STEP == 0:
            yield
    return items


def begun(steps: Steps[T], clock: Clock) -> T | Awaitable[T]:
    """Return the result of a few steps; for more steps, an awaitable that runs in slices.

    So small requests need no task.
    """
    generator: Any = steps
    try:
        for _ in range(_STEPS_AT_ONCE):
            next(generator)
    except StopIteration as end:
        result: T = end.value
        return result
    return Slices(clock).run(steps)


# A shorter slice does not count.
_SHORT_S: Final = 0.000_2
_SLICES_A_TURN: Final = 2
# The attribute of an event loop that holds its queue.
_LINE: Final = "_wirebroker_slices"


class _SliceQueue:
    """Work on one event loop that waits for its next slice; each turn starts only a few."""

    __slots__ = ("_is_due", "_loop", "_spent_s", "_waiting")

    # _is_due: `_begin_turn` is scheduled.

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._spent_s = 0.0
        self._is_due = False

    @property
    def is_long(self) -> bool:
        """Whether this turn used up its slices, or other work waits."""
        return self._spent_s >= _SLICES_A_TURN * Slices.SECONDS or bool(self._waiting)

    def spend(self, seconds: float) -> None:
        self._spent_s += seconds
        self._begin_turn_soon()

    def wait(self) -> asyncio.Future[None]:
        turn = self._loop.create_future()
        self._waiting.append(turn)
        self._begin_turn_soon()
        return turn

    def _begin_turn_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            # In an empty context: this object outlives the request that waits first.
            self._loop.call_soon(self._begin_turn, context=Context())

    def _begin_turn(self) -> None:
        self._is_due = False
        self._spent_s = 0.0
        started_count = 0
        while self._waiting and started_count < _SLICES_A_TURN:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                started_count += 1
        if self._waiting:
            self._begin_turn_soon()


def _line_of_this_loop() -> _SliceQueue:
    """Return the queue of the running loop, which owns it.

    A weak dictionary would keep the loop, and so its broker, forever: the queue refers to the loop.
    """
    loop = asyncio.get_running_loop()
    line: _SliceQueue | None = getattr(loop, _LINE, None)
    if line is None:
        line = _SliceQueue(loop)
        setattr(loop, _LINE, line)
    return line


class Slices:
    """Time slices for long work on the event loop: call `turn` after each item, or `run`.

    A turn of the loop starts at most two slices of waiting work. Background work takes shorter
    slices and does not queue.
    """

    SECONDS = 0.005
    BESIDE_OTHERS_SECONDS = 0.002

    __slots__ = ("_clock", "_end", "_has_begun", "_is_queued", "_line", "_seconds")

    def __init__(self, clock: Clock, seconds: float | None = None) -> None:
        """Begin the first slice; only background work gives `seconds`."""
        self._clock = clock
        self._seconds = self.SECONDS if seconds is None else seconds
        self._end = clock.monotonic() + self._seconds
        self._is_queued = seconds is None
        self._line: _SliceQueue | None = None
        self._has_begun = False

    @property
    def is_over(self) -> bool:
        """Whether the slice has lasted long enough."""
        return self._clock.monotonic() >= self._end

    async def turn(self) -> None:
        """Continue within the slice, or let the loop run other work first."""
        if (not self._has_begun and self._begin()) or self._clock.monotonic() >= self._end:
            await self._next()

    async def run(self, steps: Steps[T]) -> T:
        """Run steps in slices; faster than `turn` for each."""
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
        """Find the queue; return whether the first slice has to wait in it."""
        self._has_begun = True
        if self._is_queued:
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
        seconds = min(self._clock.monotonic() - self._end, self._seconds) + self._seconds
        if self._line is not None and seconds > _SHORT_S:
            self._line.spend(seconds)
