"""What a coordinator's outcome brings about: not before its records are committed, and for sure."""

import asyncio
from typing import Any

from tests.unit.wirebroker.group_server_kit import ListPartition, ManualClock, turns
from wirebroker.cluster.coordinator_partition import CoordinatorPartition, Waiter
from wirebroker.codecs.coordinator_records import CoordinatorRecord
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.runtime import Outcome, Timers

COMMIT_TIMEOUT_MS = 5


class Shard:
    """A shard that remembers what it replays."""

    def __init__(self):
        self.timers = Timers()
        self.replayed = []

    def replay(self, key, value, producer_id=-1):
        self.replayed.append((key, producer_id))

    def replay_end(self, producer_id, is_commit):
        self.replayed.append((producer_id, is_commit))

    def on_timer(self, event, moment):
        raise AssertionError

    def on_unloaded(self):
        return Outcome()


class Bench:
    """A coordinator's partition, and what it has brought about."""

    def __init__(self):
        partition: Any = ListPartition()
        self.partition = partition
        self.shard = Shard()
        self.effects: list = []
        self.clock = ManualClock()
        self.runner = CoordinatorPartition(
            partition,
            self.shard,
            self.clock,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
            on_disk_failure=lambda *_: None,
            on_effect=lambda _, effect: self.effects.append(effect),
        )

    def run(self, effect, *, has_record=True):
        """Run an operation with an effect; return who waits for its answer."""
        waiter = Waiter(lambda error: {"error_code": error})
        outcome = Outcome([CoordinatorRecord(b"k", b"v")] if has_record else [])
        outcome.effects.append(effect)
        outcome.answer(waiter, {"error_code": ErrorCode.NONE})
        self.runner.run(lambda _: outcome)
        return waiter


def test_an_effect_comes_with_the_commit_of_its_records():
    async def run():
        bench = Bench()
        bench.partition.commits_at_once = False
        answer = bench.run("first").result()
        bench.run("second", has_record=False)
        assert bench.shard.replayed
        assert not bench.effects
        bench.partition.commit()
        assert bench.effects == ["first", "second"]
        assert await answer == {"error_code": ErrorCode.NONE}

    asyncio.run(run())


def test_an_effect_outlives_the_patience_of_who_waits_for_the_answer():
    async def run():
        bench = Bench()
        bench.partition.commits_at_once = False
        answer = bench.run("late").result()
        bench.clock.seconds = 1
        assert await answer == {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
        await turns()
        assert not bench.effects
        bench.partition.commit()
        assert bench.effects == ["late"]

    asyncio.run(run())


def test_what_cannot_be_recorded_has_no_effect():
    async def run():
        bench = Bench()
        bench.partition.fails_with = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        waiter = bench.run("never")
        assert waiter.result() == {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert not bench.effects
        assert not bench.shard.replayed

    asyncio.run(run())


def test_a_partition_that_is_given_up_has_no_effects_any_more():
    async def run():
        bench = Bench()
        bench.partition.commits_at_once = False
        answer = bench.run("never").result()
        bench.runner.close()
        bench.partition.commit()
        assert not bench.effects
        assert await answer == {"error_code": ErrorCode.NOT_COORDINATOR}

    asyncio.run(run())


def test_effects_may_bring_about_more_records():
    async def run():
        bench = Bench()
        bench.runner._on_effect = lambda _, effect: effect and bench.run(effect - 1)
        bench.partition.commits_at_once = False
        bench.run(2)
        for _ in range(3):
            bench.partition.commit()
        assert len(bench.shard.replayed) == 3

    asyncio.run(run())
