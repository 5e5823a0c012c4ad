"""Long work on the loop runs in slices, few per turn."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.base.clock import Slices, next_turn

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

CLIENTS = 50
STEPS = 40


class Work:
    """Steps of 1 ms each, by a clock that only they advance."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.most_in_a_turn = 0
        self._in_this_turn = 0
        self.done: list[int] = []

    def steps(self, name: int) -> Steps[int]:
        for _ in range(STEPS):
            self.step()
            yield
        self.done.append(name)
        return name

    def step(self) -> None:
        self.clock.passed_ms += 1
        self._in_this_turn += 1
        self.most_in_a_turn = max(self.most_in_a_turn, self._in_this_turn)

    async def count_turns(self) -> None:
        while len(self.done) < CLIENTS:
            self._in_this_turn = 0
            await next_turn()


async def test_steps_take_few_slices_per_loop_turn() -> None:
    work = Work()
    slices_ms = 1000 * Slices.SECONDS
    counting = asyncio.ensure_future(work.count_turns())
    runs = [Slices(work.clock).run(work.steps(number)) for number in range(CLIENTS)]
    assert await asyncio.gather(*runs) == list(range(CLIENTS))
    await counting
    # Two slices, and two simultaneous ones that begin before the queue exists.
    assert work.most_in_a_turn <= 4 * slices_ms
    assert sorted(work.done) == list(range(CLIENTS))


async def test_explicit_turns_take_few_slices_per_loop_turn() -> None:
    work = Work()

    async def work_on(number: int) -> None:
        slices = Slices(work.clock)
        for _ in range(STEPS):
            await slices.turn()
            work.step()
        work.done.append(number)

    counting = asyncio.ensure_future(work.count_turns())
    await asyncio.gather(*map(work_on, range(CLIENTS)))
    await counting
    assert work.most_in_a_turn <= CLIENTS + 4 * 1000 * Slices.SECONDS


async def test_cancelled_work_takes_no_turn() -> None:
    work = Work()
    tasks = [
        asyncio.ensure_future(Slices(work.clock).run(work.steps(number)))
        for number in range(CLIENTS)
    ]
    await next_turn()
    await next_turn()
    for task in tasks[:-1]:
        task.cancel()
    assert await tasks[-1] == CLIENTS - 1
    for task in tasks[:-1]:
        with pytest.raises(asyncio.CancelledError):
            await task
    assert work.done == [CLIENTS - 1]


async def test_short_work_does_not_wait() -> None:
    work = Work()

    def nothing() -> Steps[str]:
        yield
        return "done"

    running = Slices(work.clock).run(nothing())
    with pytest.raises(StopIteration, match="done"):
        running.send(None)


def loop_with_left_work() -> weakref.ref[asyncio.AbstractEventLoop]:
    async def leave_work() -> None:
        tasks = [asyncio.ensure_future(Slices(work.clock).run(work.steps(n))) for n in range(9)]
        await next_turn()
        for task in tasks:
            task.cancel()
        await next_turn()

    work = Work()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave_work())
    loop.close()
    return weakref.ref(loop)


def test_a_loop_whose_work_was_left_is_freed() -> None:
    loop = loop_with_left_work()
    gc.collect()
    assert loop() is None
