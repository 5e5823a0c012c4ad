"""A prepared Produce that waits for followers gets the response of the slow path."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.produce_line import ProduceLine
from tests.support.brokers.servers import broker_of
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.replicas.roles import WaitingProduce, lead, offline
from tests.support.tools.waiting import until
from tests.unit.wirebroker.api.data.prepared_kit import SHORT_VERSIONS, world_of
from wirebroker.api.data.deferred_produce import DeferredProduce, ProduceKind
from wirebroker.api.data.delayed_produce import LEAST_WAIT_MS, Appended, DelayedProduce
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.hot.produce_response import PartitionResult
from wirebroker.request.request import Request
from wirebroker.request.session import Session
from wirebroker.storage.log.append import AppendResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.unit.wirebroker.api.data.prepared_kit import World
    from wirebroker.replica.partition import Partition

ALL = -1


def follow(partition: Partition, offset: int) -> None:
    partition.update_follower(2, fetch_offset=offset, log_start_offset=0, broker_epoch=-1)


async def begin(world: World, value: bytes, **fields: Any) -> asyncio.Task[list[Any]]:
    """Send to t-0; return when the request waits for the follower."""
    before = world.partition("t").watcher_count
    sending = world.produce({("t", 0): batch(value)}, acks=ALL, **fields)
    sent = asyncio.create_task(sending)
    await until(lambda: world.partition("t").watcher_count > before)
    return sent


async def outcome(sent: asyncio.Task[list[Any]]) -> tuple[int, int]:
    (result,) = await sent
    return result.error_code, result.base_offset


@contextlib.asynccontextmanager
async def routine_of(path: Path, **arguments: Any) -> AsyncIterator[World]:
    """Prepare a producer's requests with a follower: three records are committed."""
    produce_fields = {
        name: arguments.pop(name) for name in ("timeout_ms", "version") if name in arguments
    }
    async with world_of(path, **arguments) as world:
        partition = world.partition("t")
        lead(partition, replicas=(1, 2))
        for number in range(3):
            sent = await begin(world, b"%d" % number, **produce_fields)
            follow(partition, number + 1)
            assert await outcome(sent) == (0, number)
        assert world.short_count == 1
        yield world


@pytest.mark.parametrize("version", SHORT_VERSIONS)
async def test_third_identical_produce_waits_on_fast_path(tmp_path, version):
    async with routine_of(tmp_path, version=version) as world:
        partition = world.partition("t")
        sent = await begin(world, b"3", version=version)
        assert not sent.done()
        assert len(partition.deferred_responses(ALL)) == 1
        follow(partition, 4)
        assert await outcome(sent) == (0, 3)
        assert (world.short_count, partition.watcher_count) == (2, 0)
        assert world.stored() == [b"0", b"1", b"2", b"3"]


async def test_acks_1_waits_for_no_follower_on_fast_path(tmp_path):
    async with world_of(tmp_path) as world:
        partition = world.partition("t")
        lead(partition, replicas=(1, 2))
        await world.learn(acks=1)
        assert await world.append(b"3", acks=1) == 2
        assert (world.short_count, partition.log.high_watermark) == (1, 0)


async def test_requests_after_a_pending_response_wait_for_it(tmp_path):
    async with routine_of(tmp_path) as world:
        partition = world.partition("t")
        frames = [
            request_frame(
                ApiKey.PRODUCE,
                12,
                produce_request({("t", 0): batch(b"%d" % number)}, acks=ALL),
                correlation_id=number,
            )
            for number in (3, 4, 5)
        ]
        exchanging = asyncio.create_task(world.exchange(b"".join(frames)))
        for offset in (4, 5, 6):
            await until(lambda: partition.watcher_count)
            assert partition.log.log_end_offset == offset, "one at a time, as in Kafka"
            follow(partition, offset)
        answers = await exchanging
        size = 4 + int.from_bytes(answers[:4])
        correlation_ids = [answers[at + 4 : at + 8] for at in range(0, len(answers), size)]
        assert correlation_ids == [number.to_bytes(4) for number in (3, 4, 5)]


async def test_waiting_produces_are_answered_by_follower_offsets(tmp_path):
    async with routine_of(tmp_path) as world:
        partition = world.partition("t")
        sent = await begin(world, b"3")
        records = memoryview(bytearray(batch(b"4")))
        done = partition.append(records, now_ms=TIMESTAMP_MS, request_version=12)
        later = WaitingProduce(partition, done.last_offset + 1)
        follow(partition, 4)
        assert await outcome(sent) == (0, 3)
        assert not later.has_left
        follow(partition, 5)
        await next_turn()
        assert later.has_left


async def test_a_batch_sent_twice_waits_for_its_own_records(tmp_path):
    async with routine_of(tmp_path) as world:
        partition = world.partition("t")

        session = Session(connection_id="", peer="", listener_name="", local_host="", local_port=0)
        request = Request(ApiKey.PRODUCE, 12, 0, None, memoryview(b""), 0, session)

        def waiting_for(offset: int) -> DeferredProduce:
            kind = ProduceKind(broker_of(world.server), request, ("t", b""), 60_000)
            done = AppendResult(offset - 1, offset - 1, -1, 0, is_duplicate=True)
            return DeferredProduce(kind, partition, done, 0, b"")

        queue = partition.deferred_responses(ALL)
        waiting = {offset: waiting_for(offset) for offset in (7, 5, 6)}
        for produce in waiting.values():
            queue.add(produce)
        assert partition.watcher_count == 3
        queue.take_due(4)
        assert all(produce.is_waiting for produce in waiting.values())
        queue.take_due(6)
        assert [offset for offset in waiting if waiting[offset].is_waiting] == [7]
        queue.take_due(7)
        assert len(queue) == 0


async def test_request_timeout_applies_on_fast_path(tmp_path):
    async with routine_of(tmp_path, timeout_ms=300) as world:
        sent = await begin(world, b"3", timeout_ms=300)
        assert world.short_count == 1
        assert await outcome(sent) == (ErrorCode.REQUEST_TIMED_OUT, 3)
        assert world.short_count == 2
        assert world.partition("t").watcher_count == 0
        follow(world.partition("t"), 4)
        assert world.stored()[3] == b"3", "perhaps it is committed later"


async def test_too_few_in_sync_replicas_fail_on_fast_path_before_and_after(tmp_path):
    async with routine_of(tmp_path, min_insync_replicas="2") as world:
        partition = world.partition("t")
        sent = await begin(world, b"3")
        leading = partition.leading
        assert leading is not None
        # It catches up and leaves the ISR at the same time.
        leading.followers[2].log_end_offset = 4
        partition.log.set_high_watermark(4)
        partition.isr_accepted({1}, partition_epoch=99)
        partition.wake_watchers()
        assert await outcome(sent) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 3)
        assert world.short_count == 2
        code = await world.error_of(batch(b"4"), acks=ALL)
        assert code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert len(world.stored()) == 4


@pytest.mark.parametrize("version", SHORT_VERSIONS)
async def test_new_leader_is_reported_as_on_slow_path(tmp_path, version):
    """When the partition moves, Kafka responds to a waiting Produce and names the new leader."""
    async with routine_of(tmp_path, version=version) as world:
        partition = world.partition("t")
        slow_path = ProduceLine(world.server, has_memory=False)
        sent = await begin(world, b"3", version=version)
        request = produce_request({("t", 0): batch(b"4")}, acks=ALL)
        for topic in request["topic_data"] if version >= 13 else ():
            topic["topic_id"] = world.topic_id
        frame = request_frame(ApiKey.PRODUCE, version, request)
        exchanging = asyncio.create_task(slow_path.exchange(frame))
        await until(lambda: partition.watcher_count == 2)
        lead(partition, replicas=(1, 2), leader=2)
        partition.wake_watchers()
        assert await outcome(sent) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert world.short_count == 2
        assert world.last_answer[8:] == (await exchanging)[8:]


async def test_failed_disk_acknowledges_nothing(tmp_path):
    async with routine_of(tmp_path) as world:
        partition = world.partition("t")
        sent = await begin(world, b"3")
        with offline(partition.directory):
            partition.wake_watchers()
            assert await outcome(sent) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


async def test_wait_continues_if_leadership_is_kept(tmp_path):
    async with routine_of(tmp_path) as world:
        partition = world.partition("t")
        sent = await begin(world, b"3")
        partition.wake_watchers()
        lead(partition, replicas=(1, 2))
        partition.wake_watchers()
        assert len(partition.deferred_responses(ALL)) == 1
        follow(partition, 4)
        assert await outcome(sent) == (0, 3)


async def test_wait_is_shortened_when_the_client_disconnects(tmp_path):
    async with routine_of(tmp_path, timeout_ms=3_600_000) as world:
        partition = world.partition("t")
        sent = await begin(world, b"3", timeout_ms=3_600_000)
        world.disconnect()
        with pytest.raises(ConnectionError):
            await sent
        queue = partition.deferred_responses(ALL)
        (waiting,) = queue._waiting
        left_s = waiting.deadline_s - asyncio.get_running_loop().time()
        assert left_s <= LEAST_WAIT_MS / 1000, "as for a disk"
        assert len(partition._commits.deadlines) == 1
        follow(partition, 4)
        assert partition.watcher_count == 0


async def test_answered_large_request_frees_memory_for_the_next(tmp_path):
    async with routine_of(tmp_path, max_message_bytes="2000000") as world:
        partition = world.partition("t")
        sent = await begin(world, b"x" * 1_500_000)  # more than one receive returns
        budget = world.budget
        budget.limit_bytes = 0
        budget.add(0)
        other = Nobody()
        assert not budget.may_receive(other), "memory is short, and one holds a large frame"
        follow(partition, 4)
        assert await outcome(sent) == (0, 3)
        assert world.short_count == 2
        assert budget.may_receive(other)


class Nobody:
    """A connection in the middle of a large frame."""

    def memory_is_free(self) -> None:
        """Go on."""


async def test_record_stored_for_acks_1_stays_acknowledged_while_another_waits(tmp_path):
    async with world_of(tmp_path, 2) as world:
        stored, unstored = (world.partition("t", index) for index in (0, 1))
        await world.append(b"a", acks=1)
        lead(unstored, replicas=(1, 2))
        results = [PartitionResult(0), PartitionResult(1)]
        done: list[bool] = []
        DelayedProduce(
            [Appended(stored, results[0], 1, True), Appended(unstored, results[1], 1, False)],
            acks=1,
            timeout_ms=60_000,
            on_done=lambda: done.append(True),
        )
        assert not done
        for partition in (stored, unstored):
            lead(partition, replicas=(1, 2), leader=2)
            partition.wake_watchers()
        await until(lambda: done)
        codes = [result.error_code for result in results]
        assert codes == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_queue_has_one_timer_whatever_the_timeouts_are(tmp_path):
    async with routine_of(tmp_path) as world:
        partition = world.partition("t")
        queue = partition.deferred_responses(ALL)
        for number in range(200):
            WaitingProduce(partition, 100 + number, 2**31 - 1_000 * number)
        assert len(partition._commits.deadlines._by_tick) == 1
        queue.take_due(1_000)
