"""A waiting Fetch: which appends call it, and what ends the wait."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import threading
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import (
    append,
    create_topic,
    fetch,
    fetch_request,
    produce_request,
)
from tests.support.records.batches import batch, values_in
from tests.support.tools.waiting import until
from tests.unit.wirebroker.api.data.test_fetch import (
    BATCH_BYTES,
    FETCH_VERSION,
    LONG_MS,
    broker_at,
    partitions_of,
    until_waiting,
    watchers,
)
from tests.unit.wirebroker.replica.test_durability import FSYNC, slow_disk
from wirebroker.api.data import delayed_produce
from wirebroker.api.data.fetch_wait import FetchWait
from wirebroker.base.threads import Work
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.storage.files import ColdPagesError, DataFile

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient
    from wirebroker.api.data.partition_reads import PartitionReads
    from wirebroker.broker.server import Server


async def test_a_fetch_ends_with_its_connection(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t")
        async with client_of(server) as consumer:
            request = fetch_request({("t", 0): 0}, max_wait_ms=2**31 - 1, min_bytes=1_000_000)
            await consumer.send(ApiKey.FETCH, FETCH_VERSION, request)
            await until_waiting(server)
        await until_waiting(server, 0)
        assert not [task for task in asyncio.all_tasks() if "_fetch_later" in repr(task)]


async def test_half_closed_connection_gets_the_available_records(tmp_path):
    """Apache Kafka responds at the timeout: it cannot know whether the client still reads."""
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        request = fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS, min_bytes=1_000_000)
        async with client_of(server) as consumer:
            correlation_id = await consumer.send(ApiKey.FETCH, FETCH_VERSION, request)
            await until_waiting(server)
            consumer._writer.write_eof()
            answer = await consumer.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
            assert values_in(partitions_of(answer)["t", 0].records) == [b"a"]
            assert await consumer.is_closed()


async def test_fetch_of_a_disconnected_client_leaves_no_watchers(tmp_path, monkeypatch):
    waits: list[PartitionReads] = []

    def noted(wait: FetchWait, reads: PartitionReads) -> None:
        waits.append(reads)
        begin(wait, reads)

    begin = FetchWait.__init__
    monkeypatch.setattr(FetchWait, "__init__", noted)
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t")
        request = fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS, min_bytes=1_000_000)
        table = server.reception.table
        assert table is not None
        with socket.create_connection(server.address) as peer:
            peer.sendall(request_frame(ApiKey.FETCH, FETCH_VERSION, request))
        await until(lambda: table.metrics.connections_closed["PLAINTEXT"] == 1)
    assert waits == []


async def test_append_wakes_only_fetches_it_completes(tmp_path, monkeypatch):
    calls: list[int] = []

    def counted(wait: FetchWait, number: int) -> None:
        calls.append(number)
        on_news(wait, number)

    on_news = FetchWait._on_change
    monkeypatch.setattr(FetchWait, "_on_change", counted)

    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t", 2)
        async with contextlib.AsyncExitStack() as stack:
            patient = [await stack.enter_async_context(client_of(server)) for _ in range(20)]
            wants = 10 * BATCH_BYTES
            for consumer in patient:
                request = fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS, min_bytes=wants)
                await consumer.send(ApiKey.FETCH, FETCH_VERSION, request)
            await until_waiting(server, 20)
            await until(lambda: not partition_watchers(server, "t"))
            for _ in range(9):
                await append(client, "t", batch(b"x" * 100))
            assert calls == []
            await append(client, "t", batch(b"x" * 100))
            for consumer in patient:
                answer = await consumer.receive(ApiKey.FETCH, FETCH_VERSION, 1)
                assert len(partitions_of(answer)["t", 0].records) == wants
            assert len(calls) == 20
        assert watchers(server) == 0


def partition_watchers(server: Server, topic: str) -> int:
    return sum(
        len(replica._watchers) for replica in broker_of(server).replicas if replica.topic == topic
    )


async def test_min_bytes_may_arrive_in_any_of_many_partitions(tmp_path):
    """The append that completes the minimum sends the response."""
    rng = random.Random(12)

    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t", 7)
        ends = dict.fromkeys(range(7), 0)
        for _ in range(12):
            count = rng.choice([1, 2, 20, 60])
            request = fetch_request(
                {("t", index): end for index, end in ends.items()},
                max_wait_ms=LONG_MS,
                min_bytes=count * BATCH_BYTES,
            )
            async with client_of(server) as consumer:
                correlation_id = await consumer.send(ApiKey.FETCH, FETCH_VERSION, request)
                await until_waiting(server, 7)
                favourite = rng.randrange(7)
                for number in range(count):
                    assert watchers(server) == 7, f"answered with {number} of {count}"
                    index = rng.choice([favourite, rng.randrange(7)])
                    ends[index] += 1
                    await append(client, "t", batch(b"x" * 100), partition=index)
                answer = await consumer.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
                sizes = [len(result.records) for result in partitions_of(answer).values()]
                assert sum(sizes) == count * BATCH_BYTES
            await until_waiting(server, 0)


async def test_fetch_at_the_end_of_an_old_segment_does_not_wait(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t", segment_bytes=str(1 << 20))
        await append(client, "t", batch(b"x" * 700_000))
        await append(client, "t", batch(b"x" * 700_000))
        result = await fetch(client, "t", 0, max_wait_ms=2**31 - 1, min_bytes=10 << 20)
        assert len(result.records) == len(batch(b"x" * 700_000))


async def test_disconnected_group_member_stays_without_pending_response(tmp_path):
    """As in Apache Kafka, the member leaves at its session timeout, not with its connection."""
    settings = {
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "300000",
    }
    join: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 2**31 - 1,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }

    async def members(client: RawClient) -> int:
        request = {"groups": ["g"], "include_authorized_operations": False}
        answer = await client.ask(ApiKey.DESCRIBE_GROUPS, 3, request)
        return len(answer.groups[0].members)

    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        async with asyncio.timeout(20):
            request = {"key": "g", "key_type": 0}
            while (await client.ask(ApiKey.FIND_COORDINATOR, 2, request)).error_code:
                pass
        async with client_of(server) as member:
            await member.send(ApiKey.JOIN_GROUP, 3, join)
            async with asyncio.timeout(20):
                while not await members(client):
                    pass
            table = server.reception.table
            assert table is not None
            assert len(table) == 2
        await until(lambda: len(table) == 1)
        assert await members(client) == 1


async def test_produce_of_a_disconnected_client_waits_only_for_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(delayed_produce, "LEAST_WAIT_MS", 0)

    async with running(tmp_path, settings=FSYNC) as server, client_of(server) as client:
        await create_topic(client, "t")
        with slow_disk("t-0") as disk:
            request = produce_request({("t", 0): batch(b"a")}) | {"timeout_ms": 2**31 - 1}
            async with client_of(server) as producer:
                await producer.send(ApiKey.PRODUCE, 9, request)
                await until(lambda: disk.waiting)
                assert watchers(server) == 1
            await until_waiting(server, 0)
            assert len(broker_of(server).replicas.commits.deadlines) == 0
            disk.go.set()


async def test_uncached_batch_header_is_read_by_a_thread(tmp_path, monkeypatch):
    cold = {0: 2, 1: 3}  # how often a file is found cold, once on the loop
    warmed: list[str] = []
    read_now = DataFile.read_now

    def read_cold(file: DataFile, position: int, length: int, *, least: int) -> bytes | bytearray:
        number = int(file.path.split("/")[-2].removeprefix("t-"))
        if cold[number]:
            cold[number] -= 1
            raise ColdPagesError(file, position)
        return read_now(file, position, length, least=least)

    def warm(file: DataFile, position: int, length: int) -> None:
        del position, length
        warmed.append(threading.current_thread().name.rpartition("_")[0])
        assert file.path.endswith(".log")

    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t", 2)
        for index in (0, 1):
            for _ in range(3):
                await append(client, "t", batch(b"a", b"b"), partition=index)
        monkeypatch.setattr(DataFile, "read_now", read_cold)
        monkeypatch.setattr(DataFile, "warm", warm)
        # Within a batch, so that no cached append position applies.
        request = fetch_request({("t", 0): 3, ("t", 1): 1}, max_wait_ms=LONG_MS)
        answer = await client.ask(ApiKey.FETCH, FETCH_VERSION, request)
        partitions = partitions_of(answer)
        assert values_in(partitions["t", 0].records) == [b"a", b"b"] * 2
        assert values_in(partitions["t", 1].records) == [b"a", b"b"] * 3
        assert warmed == [Work.WARMING.thread_name] * 4
        assert watchers(server) == 0
        # A kernel that drops pages immediately, or cannot report them: the Fetch continues anyway.
        cold[0] = 1_000
        request = fetch_request({("t", 0): 1}, max_wait_ms=LONG_MS)
        answer = await client.ask(ApiKey.FETCH, FETCH_VERSION, request)
        assert len(values_in(partitions_of(answer)["t", 0].records)) == 6
