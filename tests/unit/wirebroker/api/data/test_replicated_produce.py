"""What a Produce with followers waits for: nothing for acks=1, the ISR for acks=all."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import (
    append,
    create_topic,
    fetch,
    fetch_request,
    produce_request,
)
from tests.support.records.batches import batch, values_in
from tests.support.replicas.roles import WaitingProduce, lead
from tests.support.tools.waiting import until
from tests.unit.wirebroker.api.data.prepared_kit import world_of
from tests.unit.wirebroker.replica.test_transitions import enter, partition_of
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient
    from wirebroker.replica.partition import Partition

VERSION = 12


async def send(
    client: RawClient, value: bytes, *, acks: int, timeout_ms: int = 30_000, topic: str = "t"
) -> int:
    request = {**produce_request({(topic, 0): batch(value)}, acks=acks), "timeout_ms": timeout_ms}
    return await client.send(ApiKey.PRODUCE, VERSION, request)


async def receive(client: RawClient, correlation_id: int) -> tuple[int, int]:
    answer: Any = await client.receive(ApiKey.PRODUCE, VERSION, correlation_id)
    (result,) = answer.responses[0].partition_responses
    return result.error_code, result.base_offset


def follow(partition: Partition, offset: int, replica: int = 2) -> bool:
    return partition.update_follower(
        replica, fetch_offset=offset, log_start_offset=0, broker_epoch=-1
    )


async def test_acks_1_waits_for_no_follower_and_acks_all_for_the_isr(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server)
        await enter(server, partition, replicas=(1, 2, 3), isr=(1, 2))
        assert await receive(client, await send(client, b"a", acks=1)) == (0, 0)
        assert partition.log.high_watermark == 0
        waiting = await send(client, b"b", acks=-1)
        await until(lambda: partition.watcher_count)
        async with client_of(server) as reader:
            fetched = await fetch(reader, "t", 0)
            assert (fetched.records, fetched.high_watermark) == (b"", 0)
            follow(partition, 1)
            assert partition.log.high_watermark == 1
            assert partition.watcher_count, "the second one is not everywhere"
            follow(partition, 2)
            assert await receive(client, waiting) == (0, 1)
            fetched = await fetch(reader, "t", 0)
            assert values_in(fetched.records) == [b"a", b"b"]


async def test_waiting_records_leave_only_by_the_commit_or_with_the_leadership(tmp_path):
    """Calling hundreds of waiting requests at each append was most of an append's cost."""
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server)
        await enter(server, partition, replicas=(1, 2), isr=(1, 2))
        waiting = [WaitingProduce(partition, offset) for offset in (1, 2, 3)]
        for value in (b"a", b"b", b"c"):
            assert await receive(client, await send(client, value, acks=1))
        await next_turn()
        assert not any(records.has_left for records in waiting)
        follow(partition, 2)
        follow(partition, 2)
        await next_turn()
        assert [records.has_left for records in waiting] == [True, True, False]
        partition.wake_watchers()
        await next_turn()
        assert not waiting[2].has_left, "the partition is still led here"
        partition.resign()
        partition.wake_watchers()
        await next_turn()
        result = waiting[2].result
        assert (result.error_code, result.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_hundreds_of_waiting_produces_are_answered_once_replicated(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server)
        await enter(server, partition, replicas=(1, 2), isr=(1, 2))
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(client_of(server)) for _ in range(200)]
            sent = [await send(sender, b"x", acks=-1) for sender in clients]
            await until(lambda: partition.watcher_count == len(clients))
            follow(partition, len(clients))
            results = [await receive(*pair) for pair in zip(clients, sent, strict=True)]
        assert sorted(results) == [(0, offset) for offset in range(len(clients))]
        assert partition.watcher_count == 0


async def test_follower_fetch_returns_records_its_own_progress_caused(tmp_path):
    """Transaction markers are appended while the fetch that commits the decision is processed."""
    async with running(tmp_path) as server, client_of(server) as client:
        partitions: list[Partition] = []
        for name in ("first", "second"):
            await create_topic(client, name)
            partitions.append(partition_of(server, name))
            await enter(server, partitions[-1], replicas=(1, 2), isr=(1, 2))
        first, second = partitions
        assert await receive(client, await send(client, b"a", acks=1, topic="second")) == (0, 0)

        def append_to_first() -> None:
            second.unwatch(append_to_first)
            now_ms = broker_of(server).clock.now_ms()
            records = memoryview(bytearray(batch(b"b")))
            first.append(records, now_ms=now_ms, request_version=VERSION)

        second.watch(append_to_first)
        request = fetch_request(
            {("first", 0): 0, ("second", 0): 1},
            max_wait_ms=60_000,
            current_leader_epoch=second.leader_epoch,
        )
        async with asyncio.timeout(20):
            answer = await client.ask(ApiKey.FETCH, 12, {**request, "replica_id": 2})
        records_by_topic = {topic.topic: topic.partitions[0].records for topic in answer.responses}
        assert values_in(records_by_topic["first"]) == [b"b"]
        assert not records_by_topic["second"]


@pytest.mark.parametrize("acks", [1, -1])
async def test_fast_path_produce_waits_for_a_grown_isr(tmp_path, acks):
    """The fast path must not acknowledge alone what the ISR must have."""
    async with world_of(tmp_path) as world:
        await world.learn(acks=acks)
        assert await world.append(b"3", acks=acks) == 2
        assert world.short_count == 1
        partition = world.partition("t")
        lead(partition, replicas=(1, 2))
        if acks == 1:
            assert await world.append(b"4", acks=acks) == 3
            assert partition.log.high_watermark == 3
            assert world.short_count == 1
            return
        appending = asyncio.create_task(world.append(b"4", acks=acks))
        await until(lambda: partition.watcher_count)
        assert not appending.done()
        follow(partition, 4)
        assert await appending == 3
        assert world.short_count == 1


async def test_too_few_in_sync_replicas_fail_before_and_after_the_append(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", min_insync_replicas="2")
        partition = partition_of(server)
        await enter(server, partition, replicas=(1, 2, 3), isr=(1,))
        code, _ = await receive(client, await send(client, b"a", acks=-1))
        assert code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert await receive(client, await send(client, b"a", acks=1)) == (0, 0)
        assert partition.log.high_watermark == 0, "too few have it to be shown (KIP-966)"
        await enter(server, partition, replicas=(1, 2, 3), isr=(1, 2))
        waiting = await send(client, b"b", acks=-1)
        await until(lambda: partition.watcher_count)
        leading = partition.leading
        assert leading is not None
        leading.followers[2].log_end_offset = 2
        leading.accept({1}, partition_epoch=99)
        partition.log.set_high_watermark(2)
        partition.wake_watchers()
        assert await receive(client, waiting) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 1)


async def test_request_timeout_limits_the_wait_for_followers(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server)
        await enter(server, partition, replicas=(1, 2))
        timed_out = await receive(client, await send(client, b"a", acks=-1, timeout_ms=10))
        assert timed_out == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert partition.log.log_end_offset == 1
        assert partition.watcher_count == 0


async def test_a_follower_is_fenced_by_epoch_assignment_and_offset(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        partition = partition_of(server)
        await enter(server, partition, replicas=(1, 2))

        def error_of(**fields: int) -> ErrorCode:
            arguments: dict[str, Any] = {
                "replica": 2,
                "fetch_offset": 0,
                "broker_epoch": 5,
                **fields,
            }
            with pytest.raises(KafkaError) as caught:
                partition.update_follower(arguments.pop("replica"), log_start_offset=0, **arguments)
            return caught.value.code

        assert error_of(current_leader_epoch=0) == ErrorCode.FENCED_LEADER_EPOCH
        assert error_of(current_leader_epoch=2) == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert error_of(replica=3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert error_of(replica=3, current_leader_epoch=1) == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert error_of(fetch_offset=2) == ErrorCode.OFFSET_OUT_OF_RANGE
        partition.update_follower(2, fetch_offset=0, log_start_offset=0, broker_epoch=5)
        assert error_of(broker_epoch=4) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker = broker_of(server)
        assert not broker.replicas._host.may_join(2, 5), "node 2 is not registered"
        assert broker.replicas._host.may_join(1, -1)
