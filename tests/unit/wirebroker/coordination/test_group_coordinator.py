"""The service around the groups: loading, commits, failures, timers, expiry."""

import asyncio
import errno
import threading

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups, content
from tests.support.coordinators.kit import one_broker, topic
from tests.support.records.batches import TIMESTAMP_MS
from tests.support.records.clocks import HandClock
from tests.support.tools.waiting import until
from tests.unit.wirebroker.coordination.group_server_kit import (
    ListPartition,
    commit_batch,
    group_broker,
    turns,
)
from wirebroker.base.clock import pause
from wirebroker.codecs.coordinator_records import CommittedOffset, offset_commit_record
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch
from wirebroker.config import Config
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, TopicImage
from wirebroker.coordinator.controller.image.image_change import ImageChange
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.shard.shard import GroupShard, decoded_value
from wirebroker.coordinator.outcome import Outcome
from wirebroker.engine.waiter import Waiter


def error_of(code):
    return {"error_code": code}


def appending(*records, **response):

    def operation(shard, token, now):
        outcome = Outcome(list(records))
        outcome.answer(token, dict(response))
        return outcome

    return operation


RECORD = offset_commit_record("g", "t", 0, CommittedOffset(7, 1, "", TIMESTAMP_MS))


async def test_operation_is_answered_once_its_records_are_committed():
    broker = group_broker()
    assert broker.groups.submit("g", appending(RECORD, n=1), on_error=error_of) == {"n": 1}
    [shard] = broker.groups.shards()
    assert shard.offsets.count == 1
    assert broker.replicas.partitions[0].records() == [tuple(RECORD)]


async def test_responses_including_reads_wait_for_the_high_watermark_in_order():
    partition = ListPartition()
    broker = group_broker(partitions={0: partition})
    partition.commits_at_once = False
    write = broker.groups.submit("g", appending(RECORD, n=1), on_error=error_of)
    read = broker.groups.submit("g", appending(n=2), on_error=error_of)
    await turns()
    assert not write.done()
    assert not read.done()
    partition.commit()
    assert write.result() == {"n": 1}
    assert read.result() == {"n": 2}
    assert broker.groups.submit("g", appending(n=3), on_error=error_of) == {"n": 3}


async def test_wait_for_the_high_watermark_times_out():
    partition, clock = ListPartition(), HandClock()
    broker = group_broker(partitions={0: partition}, clock=clock, offsets_commit_timeout_ms=10)
    partition.commits_at_once = False
    first = broker.groups.submit("g", appending(RECORD, n=1), on_error=error_of)
    clock.passed_ms = 5
    second = broker.groups.submit("g", appending(RECORD, n=2), on_error=error_of)
    clock.passed_ms = 10
    assert await first == {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not second.done()
    partition.commit()
    assert await second == {"n": 2}
    await broker.groups.stop()


@pytest.mark.parametrize(
    ("raised", "answered"),
    [
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE), ErrorCode.UNKNOWN_SERVER_ERROR),
        (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.NOT_COORDINATOR),
        (KafkaError(ErrorCode.FENCED_LEADER_EPOCH), ErrorCode.NOT_COORDINATOR),
        (OSError("disk"), ErrorCode.NOT_COORDINATOR),
    ],
)
async def test_failed_append_changes_nothing_and_returns_an_error(raised, answered):
    partition = ListPartition()
    broker = group_broker(partitions={0: partition})
    [*_] = broker.groups.shards()
    partition.fails_with = raised
    answer = broker.groups.submit("g", appending(RECORD), on_error=error_of)
    assert answer == {"error_code": answered}
    assert partition.batches == []


async def test_after_a_disk_failure_the_partition_is_not_served():
    partition = ListPartition()
    broker = group_broker(partitions={0: partition})
    partition.fails_with = OSError("disk")
    broker.groups.submit("g", appending(RECORD), on_error=error_of)
    assert len(broker.replicas.failures) == 1
    partition.fails_with = None
    answer = broker.groups.submit("g", appending(), on_error=error_of)
    assert answer == {"error_code": ErrorCode.NOT_COORDINATOR}


async def test_temporary_shortage_leaves_the_partition_served():
    partition = ListPartition()
    broker = group_broker(partitions={0: partition})
    partition.fails_with = OSError(errno.EMFILE, "too many open files")
    answer = broker.groups.submit("g", appending(RECORD), on_error=error_of)
    assert answer == {"error_code": ErrorCode.NOT_COORDINATOR}
    partition.fails_with = None
    answer = broker.groups.submit("g", appending(RECORD, n=1), on_error=error_of)
    assert answer == {"n": 1}


async def test_non_atomic_outcome_is_split_into_batches():
    partition = ListPartition()
    broker = group_broker(partitions={0: partition})
    records = [offset_commit_record("g", "t", n, CommittedOffset(1, 1, "", 1)) for n in range(40)]
    answer = broker.groups.submit("g", appending(*records), on_error=error_of)
    assert answer == {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR}, "too large for one"

    def in_parts(shard, token, now):
        outcome = Outcome(records, is_atomic=False)
        outcome.answer(token, {})
        return outcome

    assert broker.groups.submit("g", in_parts, on_error=error_of) == {}
    assert len(partition.batches) > 1
    assert len(partition.records()) == 40


async def test_partition_loads_before_it_is_served_and_blocks_no_other():
    clock = HandClock()
    full = ListPartition([commit_batch(("a", 0, 5), ("a", 1, 6))], index=1)
    broker = group_broker(partitions={0: ListPartition(), 1: full}, clock=clock)
    groups = broker.groups
    assert (groups.partition_for("b"), groups.partition_for("a")) == (0, 1)
    answer = groups.submit("a", appending(n=1), on_error=error_of)
    assert answer == {"error_code": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert groups.submit("b", appending(n=1), on_error=error_of) == {"n": 1}
    await until(lambda: groups.submit("a", appending(n=2), on_error=error_of) == {"n": 2})
    assert [shard.offsets.count for shard in groups.shards()] == [0, 2]
    await groups.stop()


async def test_partition_led_before_the_start_is_loaded_once(caplog):
    with caplog.at_level("INFO", "wirebroker"):
        partition = ListPartition([commit_batch(("g", 0, 5))])
        broker = group_broker(partitions={0: partition}, is_started=False)
        groups = broker.groups
        groups.start()
        await until(lambda: groups.submit("g", appending(n=1), on_error=error_of) == {"n": 1})
        assert [shard.offsets.count for shard in groups.shards()] == [1]
        await groups.stop()
        broker.replicas.resign(partition)
        partition.leader_epoch = 2
        broker.replicas.elect(partition)
        assert not list(groups.shards()), "who has stopped follows nothing"
    assert caplog.text.count("loaded") == 1


async def test_a_partition_that_cannot_be_loaded_is_not_served(caplog):
    broken = bytes(build_batch([(b"\x00\x02\x00\x01g", b"\x00\x63", ())]))
    broker = group_broker(partitions={0: ListPartition([broken])})
    refused = {"error_code": ErrorCode.NOT_COORDINATOR}
    await until(lambda: broker.groups.submit("g", appending(), on_error=error_of) == refused)
    await broker.groups.stop()
    assert "cannot load" in caplog.text


async def test_no_coordinator_without_the_offsets_topic():
    broker = group_broker(partitions={})
    answer = broker.groups.submit("g", appending(), on_error=error_of)
    assert answer == {"error_code": ErrorCode.NOT_COORDINATOR}


async def test_the_topic_is_created_once_with_kafkas_configs():
    broker = group_broker(partitions={}, offsets_topic_partition_count=3)
    broker.groups.create_topic()
    broker.groups.create_topic()
    await turns()
    assert broker.metadata.submitted == 1
    image = broker.metadata.image
    assert len(image.topics[CONSUMER_OFFSETS].partitions) == 3
    assert image.topic_config(CONSUMER_OFFSETS) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


async def test_recreated_topic_starts_with_empty_state():
    broker = group_broker()
    broker.groups.submit("g", appending(RECORD), on_error=error_of)
    broker.replicas.resign(broker.replicas.partitions[0])
    answer = broker.groups.submit("g", appending(n=1), on_error=error_of)
    assert answer == {"error_code": ErrorCode.NOT_COORDINATOR}
    broker.replicas.elect(ListPartition())
    assert broker.groups.submit("g", appending(n=1), on_error=error_of) == {"n": 1}
    [shard] = broker.groups.shards()
    assert shard.offsets.count == 0


async def test_timers_fire_when_due():
    clock = HandClock()
    broker = group_broker(clock=clock)
    fired = []

    def setting(shard, token, now):
        shard.timers.set("k", now.monotonic_ms + 5, "event")
        return appending()(shard, token, now)

    def on_timer(_shard, event, now):
        fired.append((event, now))
        return Outcome()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wirebroker.coordinator.groups.shard.shard.GroupShard.on_timer", on_timer)
        broker.groups.submit("g", setting, on_error=error_of)
        await pause(0.03)
        assert fired == [], "the clock stands still"
        clock.passed_ms = 5
        await until(lambda: fired)
    assert fired[0][0] == "event"
    await broker.groups.stop()


async def test_offsets_expire():
    clock = HandClock()
    broker = group_broker(clock=clock, offsets_retention_ms=1_000)
    broker.groups.submit("g", appending(RECORD), on_error=error_of)
    [shard] = broker.groups.shards()
    clock.passed_ms = 999
    await broker.groups.expire()
    assert shard.offsets.count == 1
    clock.passed_ms = 1_000
    await broker.groups.expire()
    assert shard.offsets.count == 0
    assert shard.groups == {}


async def test_clock_jump_expires_no_offset():
    clock = HandClock()
    broker = group_broker(clock=clock, offsets_retention_ms=1_000)
    broker.groups.submit("g", appending(RECORD), on_error=error_of)
    [shard] = broker.groups.shards()
    clock.jumped_ms = 365 * 86_400_000
    for clock.passed_ms, count in ((999, 1), (1_000, 0)):
        await broker.groups.expire()
        assert shard.offsets.count == count, clock.passed_ms


async def test_offsets_of_a_deleted_topic_are_removed():
    broker = group_broker()
    broker.groups.submit("g", appending(RECORD), on_error=error_of)
    topic = TopicImage("t", bytes(range(16)), {})
    change = ImageChange(deleted=[topic])
    image = ClusterImage(offset=7)
    await broker.groups.apply(change, image)
    [shard] = broker.groups.shards()
    assert shard.offsets.count == 0
    assert shard.image is image


async def test_a_changed_config_applies_to_present_and_later_shards():
    broker = group_broker(partitions={0: ListPartition(), 1: ListPartition(index=1)}, is_led=False)
    broker.replicas.elect(broker.replicas.partitions[0])
    interval = {"group.consumer.assignment.interval.ms": "7"}
    broker.groups.use_config(Config(cluster_wide=interval))
    broker.replicas.elect(broker.replicas.partitions[1])
    shards = list(broker.groups.shards())
    assert [shard.settings.consumer_assignment_interval_ms for shard in shards] == [7, 7]


async def test_stop_answers_waiting_requests():
    partition = ListPartition()
    broker = group_broker(partitions={0: partition})
    partition.commits_at_once = False
    waiting = broker.groups.submit("g", appending(RECORD), on_error=error_of)
    await broker.groups.stop()
    assert waiting.result() == {"error_code": ErrorCode.NOT_COORDINATOR}
    answer = broker.groups.submit("g", appending(), on_error=error_of)
    assert answer == {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}


async def test_only_the_first_response_counts_and_lost_connections_are_ignored():
    waiter = Waiter(error_of)
    waiter.resolve({"n": 1})
    waiter.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert waiter.result() == {"n": 1}
    late = Waiter(error_of, lambda response: {"made of": response})
    future = late.result()
    assert isinstance(future, asyncio.Future)
    late.resolve({"n": 2})
    assert await future == {"made of": {"n": 2}}
    disconnected = Waiter(error_of)
    cancelled = disconnected.result()
    assert isinstance(cancelled, asyncio.Future)
    cancelled.cancel()
    disconnected.resolve({"n": 3})


def large_group():
    """Return the batches of a group whose member has many topics, and its shard."""
    records = [record for n in range(1, 901) for record in topic(f"t{n}", n)]
    groups = ConsumerGroups(image=one_broker(*records))
    for member_id in ("a", "b"):
        groups.enter(member_id, *(f"t{n}" for n in range(1, 901)))
    groups.work()
    groups.settle()
    pairs = [(key, value, ()) for key, value in groups.log]
    return [build_batch(pairs, timestamp_ms=TIMESTAMP_MS)], groups


async def test_long_values_of_a_load_are_decoded_in_a_thread(monkeypatch):
    threads = set()

    def noted(key, value):
        assert len(value) > 16 << 10
        threads.add(threading.current_thread().name)
        return decoded_value(key, value)

    batches, groups = large_group()
    broker = group_broker(partitions={0: ListPartition(batches)})
    assert broker.groups._partitions._decode is decoded_value
    monkeypatch.setattr(broker.groups._partitions, "_decode", noted)
    await until(lambda: [*broker.groups.shards()])
    [shard] = broker.groups.shards()
    assert content(shard.groups["g"]) == content(groups.consumer())
    assert threads
    assert threading.current_thread().name not in threads


async def test_timers_of_loaded_members_start_in_slices_once(monkeypatch):
    batches, _ = large_group()
    steps = []
    start = GroupShard.start_timers

    def counted(shard, now):
        steps.append(sum(1 for _ in start(shard, now)))
        yield

    broker = group_broker(partitions={0: ListPartition(batches)})
    monkeypatch.setattr(broker.groups._partitions, "_start_timers", counted)
    await until(lambda: [*broker.groups.shards()])
    [shard] = broker.groups.shards()
    assert steps == [2]
    assert len(shard.timers) == 2
