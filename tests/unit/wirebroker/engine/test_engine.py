"""The effects of an operation come after its records are committed, and always."""

from typing import TYPE_CHECKING, Any

from tests.support.records.clocks import HandClock
from tests.unit.wirebroker.api.data.prepared_kit import world_of
from tests.unit.wirebroker.coordination.group_server_kit import ListPartition, turns
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.coordinator_records import CoordinatorRecord
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.coordination.partition_log import PartitionLog
from wirebroker.coordinator.outcome import Moment, Outcome, Timers
from wirebroker.engine.engine import Engine
from wirebroker.engine.waiter import Waiter
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from collections.abc import Callable

COMMIT_TIMEOUT_MS = 5


class Shard:
    def __init__(self):
        self.timers = Timers()
        self.replayed = []

    def apply(self, records, producer_id):
        self.replayed += [(key, producer_id) for key, _ in records]

    def on_timer(self, event, now):
        raise AssertionError

    def on_loaded(self, now):
        return Outcome()

    def on_unloaded(self):
        return Outcome()


class Bench:
    def __init__(self):
        partition: Any = ListPartition()
        self.partition = partition
        self.shard = Shard()
        self.effects: list = []
        self.clock = HandClock()
        self.failures: list = []
        log = PartitionLog(partition, 1, on_disk_failure=lambda *each: self.failures.append(each))
        self.engine = Engine(
            self.shard,
            log,
            self.clock,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
            on_effect=lambda _, effect: self.on_effect(effect),
        )
        self.on_effect: Callable[[Any], Any] = self.effects.append

    def run(self, effect, *, has_record=True, key=b"k"):
        waiter = Waiter(lambda error: {"error_code": error})
        outcome = Outcome([CoordinatorRecord(key, b"v")] if has_record else [])
        outcome.effects.append(effect)
        outcome.answer(waiter, {"error_code": ErrorCode.NONE})
        self.engine.run(lambda *_: outcome)
        return waiter


async def test_effect_runs_when_its_records_are_committed():
    bench = Bench()
    bench.partition.commits_at_once = False
    answer = bench.run("first").result()
    bench.run("second", has_record=False)
    assert bench.shard.replayed
    assert not bench.effects
    bench.partition.commit()
    assert bench.effects == ["first", "second"]
    assert await answer == {"error_code": ErrorCode.NONE}


async def test_effect_runs_even_after_the_response_timed_out():
    bench = Bench()
    bench.partition.commits_at_once = False
    answer = bench.run("late").result()
    bench.clock.passed_ms = 1_000
    assert await answer == {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    await turns()
    assert not bench.effects
    bench.partition.commit()
    assert bench.effects == ["late"]


async def test_refused_append_has_no_effect():
    bench = Bench()
    bench.partition.fails_with = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    waiter = bench.run("never")
    assert waiter.result() == {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not bench.effects
    assert not bench.shard.replayed


async def test_closed_engine_runs_no_more_effects():
    bench = Bench()
    bench.partition.commits_at_once = False
    answer = bench.run("never").result()
    bench.engine.close()
    bench.partition.commit()
    assert not bench.effects
    assert await answer == {"error_code": ErrorCode.NOT_COORDINATOR}


async def test_effects_can_append_more_records():
    bench = Bench()
    bench.on_effect = lambda effect: effect and bench.run(effect - 1)
    bench.partition.commits_at_once = False
    bench.run(2)
    for _ in range(3):
        bench.partition.commit()
    assert len(bench.shard.replayed) == 3


async def test_records_are_applied_in_log_order_despite_nested_appends():
    bench = Bench()
    bench.on_effect = lambda effect: effect and bench.run(None, key=effect)
    bench.partition.commits_at_once = False
    bench.run(b"second")
    bench.partition.commits_at_once = True
    answer = bench.run(None, key=b"first").result()
    assert answer == {"error_code": ErrorCode.NONE}
    in_the_log = [key for key, _ in bench.partition.records()]
    assert in_the_log == [b"k", b"first", b"second"]
    assert [key for key, _ in bench.shard.replayed] == in_the_log


async def test_append_in_a_later_leader_epoch_is_refused():
    bench = Bench()
    bench.partition.leader_epoch = 2
    assert bench.run("never").result() == {"error_code": ErrorCode.NOT_COORDINATOR}
    assert not bench.partition.batches
    assert not bench.effects


async def test_too_few_in_sync_replicas_refuse_records():
    bench = Bench()
    bench.partition.lacks_replicas = True
    answer = bench.run("never").result()
    assert answer == {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not bench.partition.batches


async def test_batch_that_takes_long_fails_like_any_append():
    bench = Bench()
    bench.partition.fails_with = TakesLongError()
    waiter = bench.run("never")
    assert waiter.result() == {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert not bench.shard.replayed


async def test_refused_appends_are_logged_once_until_one_succeeds(caplog):
    bench = Bench()
    for _ in range(2):
        bench.partition.fails_with = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        for _ in range(3):
            bench.run("never").result()
        bench.partition.fails_with = None
        bench.run("done").result()
    assert bench.effects == ["done", "done"]
    assert caplog.text.count("cannot append records") == 2


async def test_operations_committed_before_a_disk_failure_are_answered():
    bench = Bench()
    bench.partition.commits_at_once = False
    first = bench.run("first").result()
    bench.run("second", has_record=False)
    bench.partition.log.high_watermark = bench.partition.log.log_end_offset
    lost = bench.run("never").result()
    bench.partition.directory.is_online = False
    for watcher in list(bench.partition._watchers):
        watcher()
    assert await first == {"error_code": ErrorCode.NONE}
    assert await lost == {"error_code": ErrorCode.NOT_COORDINATOR}
    assert bench.effects == ["first", "second"]


async def test_own_records_may_decompress_to_a_large_size(tmp_path):
    async with world_of(tmp_path, max_message_bytes="3000000") as world:
        partition = world.partition("t")
        log = PartitionLog(
            partition,
            partition.role.leader_epoch,
            codec=Codec.GZIP,
            on_disk_failure=lambda *_: None,
        )
        value = bytes(2_000_000)
        log.append([CoordinatorRecord(b"k", value)], Moment(SystemClock().now_ms(), 0))
        assert world.stored() == [value]
