"""Deadlines: discarded ones never run, the others once, in order, not too early."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.tools.waiting import until
from wirebroker.replica.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Callable


async def test_callbacks_run_once_in_order_and_not_early():
    loop = asyncio.get_running_loop()
    deadlines = Deadlines()
    called: list[tuple[str, float]] = []

    def note(name: str) -> Callable[[], None]:
        return lambda: called.append((name, loop.time()))

    began = loop.time()
    deadlines.add(note("late"), delay_s=0.15)
    deadlines.add(note("early"), delay_s=0.01)
    assert len(deadlines) == 2
    await until(lambda: len(called) == 2)
    assert [name for name, _ in called] == ["early", "late"]
    assert called[1][1] >= began + 0.15
    assert len(deadlines) == 0


async def test_discarded_callbacks_are_not_called():
    deadlines = Deadlines()
    called: list[str] = []
    never = deadlines.add(lambda: called.append("never"), delay_s=0)
    deadlines.discard(never)
    deadlines.discard(never)

    def first() -> None:
        called.append("first")
        deadlines.discard(second)

    deadlines.add(first, delay_s=0)
    second = deadlines.add(lambda: called.append("second"), delay_s=0)
    deadlines.add(lambda: called.append("last"), delay_s=0.11)
    await until(lambda: "last" in called)
    assert called == ["first", "last"]


async def test_discarded_deadlines_leave_no_timer():
    deadlines = Deadlines()
    kept = deadlines.add(lambda: None, delay_s=2_000_000)
    for number in range(200):
        deadlines.discard(deadlines.add(lambda: None, delay_s=2_000_000 - number))
    assert list(deadlines._timers) == [kept.tick] == list(deadlines._by_tick)
    deadlines.discard(kept)
    assert not deadlines._timers
