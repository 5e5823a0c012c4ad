"""Operations in steps: in order, interleaved with others, none across a resignation.

The log is a list whose committed offset the test moves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.outcome import Outcome, Timers
from wirebroker.engine.committed_responses import ResponseErrors
from wirebroker.engine.engine import Engine
from wirebroker.engine.waiter import AwaitedResponse

if TYPE_CHECKING:
    from collections.abc import Callable

ERRORS = ResponseErrors(resigned=ErrorCode.NOT_CONTROLLER, disk=ErrorCode.KAFKA_STORAGE_ERROR)


class QuorumLog:
    name = "the list"

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.committed_offset = 0
        self.failure: KafkaError | None = None
        self.fails_with: Exception | None = None
        self.watchers: list[Callable[[], None]] = []

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def watch(self, on_advance: Callable[[], None]) -> None:
        self.watchers.append(on_advance)

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        self.watchers = [watcher for watcher in self.watchers if watcher != on_advance]

    def append(self, records: Any, *_: Any) -> None:
        if self.fails_with is not None:
            raise self.fails_with
        self.records += records

    def cut(self, records: Any) -> Any:
        raise AssertionError(f"one piece: {records}")

    def disk_failed(self, error: OSError) -> None:
        self.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))

    def commit(self, offset: int) -> None:
        self.committed_offset = offset
        self._tell()

    def fail(self, error: KafkaError) -> None:
        self.failure = error
        self._tell()

    def _tell(self) -> None:
        for watcher in list(self.watchers):
            watcher()


class ListMachine:
    def __init__(self) -> None:
        self.timers = Timers()
        self.taken: list[Any] = []
        self.timers_write = False

    def apply(self, records: Any, producer_id: int) -> None:
        del producer_id
        self.taken += records

    def on_timer(self, event: Any, now: Any) -> Any:
        del now
        return Outcome([event]) if self.timers_write else Outcome(effects=[event])

    def on_loaded(self, now: Any) -> Any:
        raise AssertionError(now)

    def on_unloaded(self) -> Any:
        return Outcome()


class World:
    """An engine and operations whose every step is a slice."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Slices, "SECONDS", 0.0)
        self.log = QuorumLog()
        self.machine = ListMachine()
        self.effects: list[Any] = []
        log: Any = self.log
        self.engine = Engine(
            self.machine,
            log,
            HandClock(),
            errors=ERRORS,
            on_effect=lambda _, effect: self.effects.append(effect),
        )
        self.begun: list[Any] = []

    async def ask(self, record: Any, *, steps: int = 3) -> Any:
        waiter: AwaitedResponse[Any] = AwaitedResponse()

        def operation(machine: ListMachine, token: Any, now: Any) -> Any:
            del now
            self.begun.append(record)
            applied = list(machine.taken)
            for _ in range(steps):
                yield
            records: list[Any] = [] if record is None else [record]
            outcome = Outcome(records)
            outcome.answers.append((token, applied))
            return outcome

        await self.engine.run_in_steps(operation, waiter)
        return await waiter.future

    def start(self, record: Any, *, steps: int = 3) -> asyncio.Task[Any]:
        return asyncio.create_task(self.ask(record, steps=steps))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await next_turn()


async def code_of(task: asyncio.Task[Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        await task
    return raised.value.code


async def test_operation_sees_records_appended_before_it(world: World) -> None:
    tasks = [world.start(record) for record in ("a", "b", None)]
    await turns()
    assert world.machine.taken == ["a", "b"]
    assert not any(task.done() for task in tasks)
    world.log.commit(1)
    assert await tasks[0] == []
    await turns()
    assert not tasks[1].done()
    world.log.commit(2)
    assert await asyncio.gather(*tasks) == [[], ["a"], ["a", "b"]]


async def test_other_tasks_run_between_steps(world: World) -> None:
    task = world.start("a", steps=20)
    count = 0
    while not world.machine.taken:
        await next_turn()
        count += 1
    world.log.commit(1)
    assert await task == []
    assert count >= 20


async def test_resignation_between_steps_leaves_no_record(world: World) -> None:
    running, waiting = world.start("a", steps=20), world.start("b")
    await turns(5)
    assert world.begun == ["a"]
    world.engine.close()
    assert await code_of(running) is ErrorCode.NOT_CONTROLLER
    assert await code_of(waiting) is ErrorCode.NOT_CONTROLLER
    assert not world.log.records
    assert world.begun == ["a"]


async def test_resignation_fails_operations_waiting_for_the_quorum(world: World) -> None:
    committed, outstanding, look = world.start("a"), world.start("b"), world.start(None)
    await turns()
    world.log.commit(1)
    world.engine.close()
    assert await committed == []
    assert await code_of(outstanding) is ErrorCode.NOT_CONTROLLER
    assert await code_of(look) is ErrorCode.NOT_CONTROLLER
    assert not world.log.watchers


async def test_lost_log_fails_waiting_and_later_operations_with_its_error(world: World) -> None:
    waiting = world.start("a")
    await turns()
    running = world.start("b", steps=20)
    await turns(5)
    world.log.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is on fire"))
    for task in (waiting, running, world.start("c"), world.start(None)):
        with pytest.raises(KafkaError, match="on fire"):
            await task
    assert world.log.records == ["a"]


async def test_failed_write_fails_all_operations_and_loses_the_log(world: World) -> None:
    waiting = world.start("a")
    await turns()
    world.log.fails_with = OSError(5, "no disk")
    for task in (world.start("b"), waiting):
        with pytest.raises(KafkaError, match="no disk") as raised:
            await task
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.machine.taken == ["a"]


async def test_refused_append_fails_only_its_operation(world: World) -> None:
    world.log.fails_with = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
    with pytest.raises(KafkaError, match="no room"):
        await world.ask("a")
    world.log.fails_with = None
    task = world.start("b")
    await turns()
    world.log.commit(1)
    assert await task == []
    assert world.machine.taken == ["b"]


async def test_cancelled_operation_appends_nothing(world: World) -> None:
    task = world.start("a", steps=20)
    await turns(5)
    task.cancel()
    after = world.start("b")
    await turns()
    world.log.commit(1)
    assert await after == []
    assert world.machine.taken == ["b"]
    assert task.cancelled()


async def test_drain_completes_the_running_operation(world: World) -> None:
    running = world.start("a", steps=20)
    await turns(5)
    drain = asyncio.create_task(world.engine.drain())
    late = world.start("b")
    await drain
    assert world.machine.taken == ["a"]
    assert await code_of(late) is ErrorCode.NOT_CONTROLLER
    world.log.commit(1)
    assert await running == []
    world.engine.close()
    assert world.begun == ["a"]


async def test_timers_set_by_operations_fire(world: World) -> None:
    world.machine.timers.set("key", 0, "an effect")
    task = world.start("a")
    await turns()
    world.log.commit(1)
    await task
    while not world.effects:
        await next_turn()
    assert world.effects == ["an effect"]


async def test_timer_that_writes_waits_for_the_running_operation(world: World) -> None:
    world.machine.timers_write = True
    await world.ask(None)
    running = world.start("a", steps=20)
    await turns(5)
    assert world.begun == [None, "a"]
    world.machine.timers.set("key", 0, "by a timer")
    await world.engine.catch_up()
    assert world.log.records == ["a", "by a timer"]
    world.log.commit(2)
    assert await running == []


async def test_timer_is_run_after_an_operation_that_fails(world: World) -> None:
    world.machine.timers_write = True
    world.machine.timers.set("key", 0, "by a timer")

    def refuse(*_: Any) -> Any:
        yield
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    with pytest.raises(KafkaError):
        await world.engine.run_in_steps(refuse, AwaitedResponse())
    while not world.log.records:
        await next_turn()
    assert world.machine.taken == ["by a timer"]


async def test_timer_runs_between_queued_operations(world: World) -> None:
    world.machine.timers.set("key", 0, "an effect")
    tasks = [world.start(record, steps=20) for record in ("a", "b", "c")]
    while not world.machine.taken:
        await next_turn()
    world.log.commit(1)
    assert world.effects == ["an effect"]
    assert world.machine.taken == ["a"]
    await turns(100)
    world.log.commit(3)
    await asyncio.gather(*tasks)


async def test_catching_up_while_an_operation_runs_leaves_one_timer(world: World) -> None:
    world.machine.timers.set("key", 0, "an effect")
    task = world.start("a", steps=20)
    await turns(5)
    catching_up = asyncio.create_task(world.engine.catch_up())
    await turns(5)
    catching_up.cancel()
    while not world.machine.taken:
        await next_turn()
    world.log.commit(1)
    assert await task == []
    assert world.effects == ["an effect"]
    await turns()
    assert world.effects == ["an effect"]
