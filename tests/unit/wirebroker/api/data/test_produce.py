"""Produce over a socket: acks, errors, large and many partitions, flushes, failing disks."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, memory_directory, running
from tests.support.protocol.raw_client import RawClient
from tests.support.protocol.requests import (
    PRODUCE_VERSION,
    append,
    create_topic,
    delete_topic,
    fetch,
    produce,
    produce_request,
)
from tests.support.records.batches import batch, values_in
from tests.support.storage.failing_files import FailingFiles
from tests.support.tools.waiting import until
from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.codec import Codec
from wirebroker.replica.local_replica import LARGE_APPEND_BYTES
from wirebroker.replica.replica_role import FollowerRole
from wirebroker.storage.files import DataFile

if TYPE_CHECKING:
    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition


def partition_of(server: Server, topic: str, index: int = 0) -> Partition:
    partitions, _ = broker_of(server).replicas.find(topic, b"", by_id=False)
    return partitions[index]


def large(fill: bytes = b"x") -> bytes:
    return fill * (LARGE_APPEND_BYTES + 1)


LARGE_TOPIC = {"max_message_bytes": str(64 << 20)}


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [3, 8, 9, 12])
async def test_records_are_appended_and_answered(tmp_path, acks, version):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        first = await produce(client, "t", batch(b"a", b"b"), acks=acks, version=version)
        second = await produce(client, "t", batch(b"c"), acks=acks, version=version)
        assert (first.error_code, first.base_offset, second.base_offset) == (0, 0, 2)
        assert first.log_append_time_ms == -1
        if version >= 5:
            assert second.log_start_offset == 0
        fetched = await fetch(client, "t", 0)
        assert values_in(fetched.records) == [b"a", b"b", b"c"]


async def test_topics_are_identified_by_id_from_version_13(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        topic_id = await create_topic(client, "t")
        request = produce_request({("", 0): batch(b"a"), ("", 5): batch(b"a")})
        request["topic_data"][0] |= {"topic_id": topic_id}
        answer = await client.ask(ApiKey.PRODUCE, 13, request)
        (topic,) = answer.responses
        assert topic.topic_id == topic_id
        assert [result.error_code for result in topic.partition_responses] == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        request["topic_data"][0] |= {"topic_id": b"?" * 16}
        answer = await client.ask(ApiKey.PRODUCE, 13, request)
        for result in answer.responses[0].partition_responses:
            assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_acks_0_is_not_answered(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        for value in (b"a", b"b"):
            request = produce_request({("t", 0): batch(value)}, acks=0)
            await client.send(ApiKey.PRODUCE, PRODUCE_VERSION, request)
        assert values_in((await fetch(client, "t", 0)).records) == [b"a", b"b"]


async def test_error_with_acks_0_closes_the_connection(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    async with running(tmp_path) as server, client_of(server) as client:
        request = produce_request({("nowhere", 0): batch(b"a")}, acks=0)
        await client.send(ApiKey.PRODUCE, PRODUCE_VERSION, request)
        assert await client.is_closed()
    assert "nowhere-0 UNKNOWN_TOPIC_OR_PARTITION" in caplog.text


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (batch(b"a")[:-1], ErrorCode.INVALID_RECORD),
        (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        (batch(b"a")[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        (batch(b"x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
        (
            batch(b"a", producer_id=7, producer_epoch=0, base_sequence=5),
            ErrorCode.NONE,
        ),
        (
            batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
    ],
)
async def test_invalid_batch_is_refused_and_not_appended(tmp_path, records, code):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        result = await produce(client, "t", records)
        assert result.error_code == code
        if code != ErrorCode.NONE:
            assert result.base_offset == -1
            assert partition_of(server, "t").log.log_end_offset == 0


async def test_acks_2_and_internal_topics_are_refused(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        result = await produce(client, "t", batch(b"a"), acks=2)
        assert result.error_code == ErrorCode.INVALID_REQUIRED_ACKS
        await create_topic(client, "__consumer_offsets", cleanup_policy="compact")
        result = await produce(client, "__consumer_offsets", batch(b"a"))
        assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_zstd_needs_version_7(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        records = batch(b"a", codec=Codec.ZSTD)
        result = await produce(client, "t", records, version=6)
        assert result.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        result = await produce(client, "t", records, version=7)
        assert result.error_code == 0


async def test_failure_of_one_partition_leaves_the_others(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 3)
        damaged = batch(b"b")[:-1] + b"!"
        records = {("t", 0): batch(b"a"), ("t", 1): damaged, ("t", 9): batch(b"c")}
        request = produce_request(records)
        answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
        codes = [result.error_code for result in answer.responses[0].partition_responses]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [0, ErrorCode.CORRUPT_MESSAGE, unknown]


async def test_a_retry_of_an_idempotent_producer_is_answered_with_its_first_offset(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"other"))
        records = batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)
        assert await append(client, "t", records) == 1
        assert await append(client, "t", records) == 1
        late = batch(b"c", producer_id=7, producer_epoch=0, base_sequence=5)
        result = await produce(client, "t", late)
        assert result.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert partition_of(server, "t").log.log_end_offset == 3


async def test_large_batch_is_appended_off_the_event_loop(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", **LARGE_TOPIC)
        for number, value in enumerate((large(b"a"), b"small", large(b"b"))):
            assert await append(client, "t", batch(value)) == number
        fetched = await fetch(client, "t", 0, partition_max_bytes=50 << 20)
        assert values_in(fetched.records) == [large(b"a"), b"small", large(b"b")]


async def test_large_and_small_batches_of_many_connections_all_arrive(tmp_path):
    async def one(server: Server, number: int) -> list[int]:
        async with client_of(server) as client:
            fill = bytes([65 + number])
            values = [large(fill), fill, large(fill), fill]
            return [await append(client, "t", batch(value)) for value in values]

    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", **LARGE_TOPIC)
        offsets = await asyncio.gather(*(one(server, number) for number in range(4)))
        assert sorted(offset for client_offsets in offsets for offset in client_offsets) == list(
            range(16)
        )
        assert all(client_offsets == sorted(client_offsets) for client_offsets in offsets)
        partition_of(server, "t").log.check()
        fetched = await fetch(client, "t", 0, partition_max_bytes=50 << 20)
        assert len(values_in(fetched.records)) == 16


async def test_topic_deleted_during_a_large_append_is_released_after(tmp_path, monkeypatch):
    began, go = threading.Event(), threading.Event()
    write = DataFile.write_at

    def held(file: DataFile, position: int, data: Any) -> None:
        if Path(file.path).parent.name == "t-0":
            began.set()
            assert go.wait(10)
        write(file, position, data)

    monkeypatch.setattr(DataFile, "write_at", held)
    async with (
        running(tmp_path) as server,
        client_of(server) as client,
        client_of(server) as other,
        client_of(server) as third,
    ):
        await create_topic(client, "t", **LARGE_TOPIC)
        appending = asyncio.create_task(produce(client, "t", batch(large())))
        assert await asyncio.to_thread(began.wait, 10)
        queued = asyncio.create_task(produce(third, "t", batch(b"behind")))
        deleting = asyncio.create_task(delete_topic(other, "t"))
        replicas = broker_of(server).replicas
        await until(lambda: not replicas.find("t", b"", by_id=False)[0])
        go.set()
        result = await appending
        assert result.error_code in {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert (await queued).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await deleting
        assert all(directory.is_online for directory in replicas.directories)
        await create_topic(client, "t")
        assert await append(client, "t", batch(b"new")) == 0


async def test_hundreds_of_partitions_in_one_request(tmp_path):
    with memory_directory(tmp_path) as directory:
        async with running(directory) as server, client_of(server) as client:
            await create_topic(client, "t", 401)
            records = {("t", index): batch(b"%d" % index) for index in range(402)}
            request = produce_request(records)
            answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
            results = answer.responses[0].partition_responses
            assert [result.index for result in results] == list(range(402))
            assert {result.error_code for result in results[:401]} == {0}
            assert results[401].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            fetched = await fetch(client, "t", 0, partition=400)
            assert values_in(fetched.records) == [b"400"]


async def test_large_batches_do_not_block_other_requests(tmp_path, monkeypatch):
    """A hundred batches of 1 MB would hold the loop as long as one of 100 MB."""
    monkeypatch.setattr(Slices, "SECONDS", 0.0)
    turn = 0
    turns: list[int] = []
    write = DataFile.write_at

    def noted(file: DataFile, position: int, data: Any) -> None:
        turns.append(turn)
        write(file, position, data)

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await next_turn()

    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 3)
        monkeypatch.setattr(DataFile, "write_at", noted)
        counting = asyncio.create_task(count())
        records = {("t", index): batch(bytes(1_000_000)) for index in range(3)}
        answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce_request(records))
        counting.cancel()
        results = answer.responses[0].partition_responses
        assert [result.error_code for result in results] == [0, 0, 0]
        assert len(set(turns)) == 3


async def test_flush_messages_syncs_before_the_response(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", flush_messages="1")
        await append(client, "t", batch(b"a"))
        assert partition_of(server, "t").log.recovery_point == 1


async def test_topic_compression_is_applied_off_the_event_loop(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", compression_type="zstd")
        values = [b"%d" % number * 10 for number in range(3_000)]
        await append(client, "t", batch(*values))
        fetched = await fetch(client, "t", 0)
        assert values_in(fetched.records) == values
        assert len(fetched.records) < len(batch(*values)) / 2


async def test_partition_named_twice_gets_its_last_records(tmp_path):
    """As in Apache Kafka 4.3.1, where the later entry replaces the earlier one in a map."""
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 2, **LARGE_TOPIC)
        # A large first batch would be appended after the small second one.
        first, second, third = batch(large()), batch(b"two", b"three"), batch(b"x")
        named = [(0, first), (0, second), (1, third)]
        parts = [{"index": index, "records": records} for index, records in named]
        for topics, base_offset in (
            ([{"name": "t", "partition_data": parts}], 0),
            ([{"name": "t", "partition_data": [part]} for part in parts], 2),
        ):
            request = {**produce_request({}), "topic_data": topics}
            answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
            (of_topic,) = answer.responses
            offsets = {result.index: result.base_offset for result in of_topic.partition_responses}
            assert offsets == {0: base_offset, 1: base_offset // 2}
            assert len(of_topic.partition_responses) == 2
        values = values_in((await fetch(client, "t", 0)).records)
        assert values == [b"two", b"three"] * 2


# -- failing disks --


@pytest.mark.parametrize("value", [b"small", large()])
async def test_failed_write_takes_only_its_directory_offline(tmp_path, value):
    disk = FailingFiles()
    one, two = tmp_path / "one", tmp_path / "two"

    async with running(one, two, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t", 2, **LARGE_TOPIC)
        broken, sound = sorted(
            range(2),
            key=lambda index: partition_of(server, "t", index).directory.path != str(two),
        )
        for index in (broken, sound):
            await append(client, "t", batch(b"before"), partition=index)
        disk.fail(two / "t-", "write")
        result = await produce(client, "t", batch(value), partition=broken)
        assert (result.error_code, result.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        disk.broken.clear()
        result = await produce(client, "t", batch(b"after"), partition=broken)
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        fetched = await fetch(client, "t", 0, partition=broken)
        assert fetched.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await append(client, "t", batch(b"after"), partition=sound) == 1
        fetched = await fetch(client, "t", 0, partition=sound)
        assert values_in(fetched.records) == [b"before", b"after"]
        # New partitions go to the working directory.
        await create_topic(client, "new", 2)
        for index in range(2):
            assert await append(client, "new", batch(b"a"), partition=index) == 0
    # The next start recovers the acknowledged records.
    async with running(one, two) as server, client_of(server) as client:
        fetched = await fetch(client, "t", 0, partition=broken)
        assert values_in(fetched.records)[:1] == [b"before"]
        assert await append(client, "t", batch(b"again"), partition=broken) >= 1


async def test_a_failed_sync_is_not_acknowledged_and_takes_the_directory_offline(tmp_path):
    disk = FailingFiles()

    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t", flush_messages="1")
        await create_topic(client, "other")
        disk.fail(tmp_path / "t-0", "sync")
        # Records written there by the same request but not synced do not count either.
        request = produce_request({("other", 0): batch(b"a"), ("t", 0): batch(b"a")})
        answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
        for topic in answer.responses:
            (result,) = topic.partition_responses
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert result.base_offset == -1
        disk.broken.clear()
        result = await produce(client, "other", batch(b"a"))
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


async def test_a_shortage_of_descriptors_fails_the_request_only(tmp_path):
    disk = FailingFiles()
    disk.error_number = errno.EMFILE

    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t")
        disk.fail(tmp_path / "t-0", "write")
        result = await produce(client, "t", batch(b"a"))
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.broken.clear()
        assert await append(client, "t", batch(b"a")) == 0


async def test_pipelining_connections_get_their_own_responses(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        clients = [await RawClient.connect(server.address) for _ in range(2)]
        sent = [
            (sender, await sender.send(ApiKey.PRODUCE, 9, produce_request({("t", 0): batch(b"a")})))
            for _ in range(20)
            for sender in clients
        ]
        offsets = []
        for sender, correlation_id in sent:
            answer = await sender.receive(ApiKey.PRODUCE, 9, correlation_id)
            offsets.append(answer.responses[0].partition_responses[0].base_offset)
        assert sorted(offsets) == list(range(40))
        for sender in clients:
            await sender.close()


@pytest.mark.parametrize(("version", "leader"), [(9, (-1, -1)), (10, (1, 0)), (12, (1, 0))])
async def test_new_leader_is_reported_with_its_endpoint(tmp_path, version, leader):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server, "t")
        partition.resign()
        partition.role = FollowerRole(leader=1, leader_epoch=0, partition_epoch=0)
        request = produce_request({("t", 0): batch(b"a")})
        answer: Any = await client.ask(ApiKey.PRODUCE, version, request)
        (result,) = answer.responses[0].partition_responses
        assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        current_leader = result.current_leader
        assert (current_leader.leader_id, current_leader.leader_epoch) == leader
        endpoints = [(1, server.address[1])] if version >= 10 else []
        assert [
            (endpoint.node_id, endpoint.port) for endpoint in answer.node_endpoints
        ] == endpoints
