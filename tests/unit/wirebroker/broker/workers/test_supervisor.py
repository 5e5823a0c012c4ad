"""Restarts of exited workers with growing delays, and the clean stop."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulation.machine.loop import SimulatedClock, SimulatedLoop
from wirebroker.base.clock import pause
from wirebroker.broker.workers.orders import WorkerConfig
from wirebroker.broker.workers.supervisor import NotStartedError, Supervisor
from wirebroker.broker.workers.worker_process import how_it_ended

if TYPE_CHECKING:
    from collections.abc import Coroutine

FOR_EVER = 1e9


class ScriptedWorker:
    """A worker that serves a second after its start and lives for a given time."""

    def __init__(self, world: World, number: int, lives_s: float) -> None:
        self._world = world
        self._number = number
        self._lives_s = lives_s
        self._stopped = asyncio.Event()

    async def ready_lines(self) -> list[str]:
        await pause(1)
        return [f"worker {self._number}"] if self._lives_s > 1 else []

    async def ended(self) -> int:
        try:
            await asyncio.wait_for(self._stopped.wait(), self._lives_s)
        except TimeoutError:
            return -9
        self._world.events.append((self._world.loop.time(), f"{self._number} stops"))
        return 0

    def stop(self) -> None:
        self._stopped.set()


class World:
    """Three workers, and the lifetime of each of their starts (after these: forever)."""

    def __init__(self, **lives: list[float]) -> None:
        self.loop = SimulatedLoop(Random(1))
        self.events: list[tuple[float, str]] = []
        self._lives = {int(name[1:]): list(lifetimes) for name, lifetimes in lives.items()}
        self.failures: dict[int, int] = {}
        first, *members = (WorkerConfig(number, number, {}, None, None) for number in (1, 2, 3))
        self.supervisor = Supervisor(
            first, members, start=self._start, clock=SimulatedClock(self.loop)
        )

    async def _start(self, order: WorkerConfig) -> ScriptedWorker:
        self.events.append((round(self.loop.time(), 3), f"{order.worker} starts"))
        if self.failures.get(order.worker):
            self.failures[order.worker] -= 1
            raise OSError(11, "no more processes")
        lives = self._lives.get(order.worker, [])
        return ScriptedWorker(self, order.worker, lives.pop(0) if lives else FOR_EVER)

    def run(self, test: Coroutine[Any, Any, None]) -> None:
        try:
            self.loop.run_until_complete(test)
        finally:
            self.loop.close()

    def starts(self, number: int) -> list[float]:
        return [time for time, event in self.events if event == f"{number} starts"]


def test_first_worker_starts_before_and_stops_after_the_others():
    world = World()

    async def test() -> None:
        lines = await world.supervisor.start()
        assert lines == {number: [f"worker {number}"] for number in (1, 2, 3)}
        await world.supervisor.stop()

    world.run(test())
    names = [event for _, event in world.events]
    assert names[:3] == ["1 starts", "2 starts", "3 starts"]
    assert world.starts(2) == world.starts(3) == [1]
    assert names[-1] == "1 stops"
    assert set(names[3:5]) == {"2 stops", "3 stops"}


def test_dead_worker_is_restarted_with_backoff_that_a_long_run_resets(caplog):
    world = World(_2=[2, 2, 2, 2, 2, 2, 2, 2, 100])

    async def test() -> None:
        await world.supervisor.start()
        with caplog.at_level(logging.WARNING, "wirebroker"):
            await pause(600)
        await world.supervisor.stop()

    world.run(test())
    starts = world.starts(2)
    pauses = [after - before for before, after in pairwise(starts)]
    # The first life is 1 s longer: the supervisor begins to watch when the worker serves.
    assert pauses == [3.5, 3, 4, 6, 10, 18, 32, 32, 100.5]
    assert world.starts(1) == [0]
    assert caplog.messages[0] == "worker 2 (node 2) was killed by SIGKILL: restarting it in 0.5 s"
    assert len(caplog.messages) == len(pauses)


def test_worker_with_the_controller_is_restarted_too():
    world = World(_1=[5])

    async def test() -> None:
        await world.supervisor.start()
        await pause(60)
        await world.supervisor.stop()

    world.run(test())
    assert world.starts(1) == [0, 6.5]
    assert world.events[-1][1] == "1 stops"


def test_process_creation_failure_is_retried(caplog):
    world = World(_3=[4])

    async def test() -> None:
        await world.supervisor.start()
        world.failures[3] = 2
        await pause(60)
        await world.supervisor.stop()

    world.run(test())
    assert world.starts(3) == [1, 6.5, 7.5, 9.5]
    assert [message for message in caplog.messages if "cannot start" in message] == [
        "cannot start worker 3: [Errno 11] no more processes"
    ] * 2


@pytest.mark.parametrize("number", [1, 3])
def test_worker_that_never_serves_stops_all_workers(number):
    world = World(**{f"_{number}": [0.5]})

    async def test() -> None:
        with pytest.raises(NotStartedError) as failed:
            await world.supervisor.start()
        assert failed.value.status == -9

    world.run(test())
    started = {event[0] for _, event in world.events if event.endswith("starts")}
    stopped = {event[0] for _, event in world.events if event.endswith("stops")}
    assert stopped == started - {str(number)}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (1, "ended with status 1"),
        (-9, "was killed by SIGKILL"),
        (-99, "was killed by signal 99"),
    ],
)
def test_exit_status_is_described_in_words(status, words):
    assert how_it_ended(status) == words
