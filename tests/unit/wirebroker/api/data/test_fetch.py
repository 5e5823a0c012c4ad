"""Fetch over a socket: limits, waits and wakeups, sessions, errors, deleted topics."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, memory_directory, running
from tests.support.protocol.requests import (
    FETCH_VERSION,
    append,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    produce_request,
)
from tests.support.records.batches import batch, values_in
from tests.support.storage.failing_files import FailingFiles
from tests.support.tools.waiting import until
from wirebroker.api.data.fetch_wait import FetchWait
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server

# One wait that a passing test never completes, and one that it does.
LONG_MS = 20_000
SHORT_MS = 60

BATCH_BYTES = len(batch(b"x" * 100))


@contextlib.asynccontextmanager
async def broker_at(path: Path, **settings: str) -> AsyncIterator[tuple[Server, RawClient]]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    async with running(path, settings=named) as server, client_of(server) as client:
        yield server, client


async def ask(client: RawClient, request: dict[str, Any], version: int = FETCH_VERSION) -> Any:
    return await client.ask(ApiKey.FETCH, version, request)


def partitions_of(answer: Any) -> dict[tuple[str, int], Any]:
    return {
        (topic.topic, partition.partition_index): partition
        for topic in answer.responses
        for partition in topic.partitions
    }


def watchers(server: Server) -> int:
    return sum(partition.watcher_count for partition in broker_of(server).replicas)


async def until_waiting(server: Server, count: int = 1) -> None:
    await until(lambda: watchers(server) == count)


# -- reads --


@pytest.mark.parametrize("version", [4, 6, 7, 11, 12])
async def test_records_are_returned_with_high_watermark_and_lso(tmp_path, version):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a", b"b"))
        await append(client, "t", batch(b"c"))
        answer = await ask(client, fetch_request({("t", 0): 0}), version)
        result = partitions_of(answer)["t", 0]
        assert (result.error_code, result.high_watermark, result.last_stable_offset) == (0, 3, 3)
        assert values_in(result.records) == [b"a", b"b", b"c"]
        assert result.aborted_transactions is None
        result = await fetch(client, "t", 1, isolation_level=1)
        assert values_in(result.records) == [b"a", b"b", b"c"], "batches come whole"
        assert result.aborted_transactions == []
        assert values_in((await fetch(client, "t", 2)).records) == [b"c"]
        assert (await fetch(client, "t", 3)).records == b""


async def test_topics_are_identified_by_id_from_version_13(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        topic_id = await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        for version in (13, 16, 18):
            request = fetch_request({(topic_id, 0): 0, (topic_id, 4): 0, (b"?" * 16, 0): 0})
            answer = await ask(client, request, version)
            codes = [
                (topic.topic_id, partition.error_code)
                for topic in answer.responses
                for partition in topic.partitions
            ]
            assert codes == [
                (topic_id, 0),
                (b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
                (topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ]


@pytest.mark.parametrize(
    ("partition_max_bytes", "max_bytes", "expected"),
    [
        (10, 10_000, BATCH_BYTES),  # the first batch is complete, however small the limits
        (10_000, 10, BATCH_BYTES),
        (0, 0, BATCH_BYTES),
        (BATCH_BYTES + 10, 10_000, BATCH_BYTES + 10),  # the last one may be truncated
        (10_000, 2 * BATCH_BYTES + 1, 2 * BATCH_BYTES + 1),
        (10_000, 10_000, 3 * BATCH_BYTES),
    ],
)
async def test_byte_limits_bound_the_response(tmp_path, partition_max_bytes, max_bytes, expected):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        for _number in range(3):
            await append(client, "t", batch(b"x" * 100))
        result = await fetch(
            client, "t", 0, partition_max_bytes=partition_max_bytes, max_bytes=max_bytes
        )
        assert len(result.records) == expected


async def test_negative_limits_are_answered_as_kafka_does(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        result = await fetch(client, "t", 0, partition_max_bytes=-1)
        assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        result = await fetch(client, "t", 1, partition_max_bytes=-1)
        assert result.error_code == 0


async def test_later_partitions_get_the_remaining_bytes(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t", 3)
        for partition in range(3):
            await append(client, "t", batch(b"x" * 100), partition=partition)
        positions = {("t", 2): 0, ("t", 0): 0, ("t", 1): 0}
        answer = await ask(client, fetch_request(positions, max_bytes=2 * BATCH_BYTES))
        partitions = partitions_of(answer)
        assert [index for _, index in partitions] == [2, 0, 1], "in the order of the request"
        assert [len(result.records) for result in partitions.values()] == [
            BATCH_BYTES,
            BATCH_BYTES,
            0,
        ]
        # After the first data, less than a whole batch is omitted.
        answer = await ask(client, fetch_request(positions, max_bytes=2 * BATCH_BYTES - 1))
        sizes = [len(result.records) for result in partitions_of(answer).values()]
        assert sizes == [BATCH_BYTES, 0, 0]


async def test_the_broker_s_fetch_max_bytes_bounds_the_answer(tmp_path):
    async with broker_at(tmp_path, fetch_max_bytes="1024") as (_, client):
        await create_topic(client, "t", 2)
        for partition in range(2):
            await append(client, "t", batch(b"x" * 1_000), partition=partition)
        answer = await ask(client, fetch_request({("t", 0): 0, ("t", 1): 0}))
        sizes = [len(result.records) for result in partitions_of(answer).values()]
        assert sizes == [len(batch(b"x" * 1_000)), 0]


# -- errors ----------------------------------------------------------------------------------------


async def test_errors_are_reported_per_partition(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        for offset, fields, code in (
            (2, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
            (-1, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
            (0, {"current_leader_epoch": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (0, {"last_fetched_epoch": 5}, ErrorCode.OFFSET_OUT_OF_RANGE),
            (-5, {"last_fetched_epoch": 0}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ):
            result = await fetch(client, "t", offset, **fields, max_wait_ms=LONG_MS)
            assert result.error_code == code
            assert (result.high_watermark, result.log_start_offset) == (-1, -1)
            assert result.records == b""


async def test_diverged_log_gets_the_diverging_epoch(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        result = await fetch(client, "t", 4, last_fetched_epoch=0, max_wait_ms=LONG_MS)
        assert result.error_code == 0
        assert (result.diverging_epoch.epoch, result.diverging_epoch.end_offset) == (0, 1)
        result = await fetch(client, "t", 1, last_fetched_epoch=0)
        assert result.diverging_epoch.epoch == -1


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
async def test_fetch_by_a_non_replica_broker_is_refused(tmp_path, epoch, code):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        request = fetch_request({("t", 0): 0}, current_leader_epoch=epoch) | {"replica_id": 5}
        assert partitions_of(await ask(client, request))["t", 0].error_code == code
        request["replica_id"] = -2  # the debugging consumer
        assert partitions_of(await ask(client, request))["t", 0].error_code == 0


async def test_unknown_topics_come_last_and_do_not_end_the_wait(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t")
        positions = {("nowhere", 0): 0, ("t", 0): 0}
        request = fetch_request(positions, max_wait_ms=LONG_MS)
        correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
        await until_waiting(server)
        async with client_of(server) as producer:
            await append(producer, "t", batch(b"a"))
        answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
        partitions = partitions_of(answer)
        assert list(partitions) == [("t", 0), ("nowhere", 0)]
        assert partitions["nowhere", 0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # Only unknown partitions: the response is immediate.
        await ask(client, fetch_request({("nowhere", 0): 0}, max_wait_ms=LONG_MS))


# -- waits --


async def test_append_wakes_a_waiting_fetch(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t")
        request = fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS)
        correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
        await until_waiting(server)
        async with client_of(server) as producer:
            await append(producer, "t", batch(b"a"))
        answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
        assert values_in(partitions_of(answer)["t", 0].records) == [b"a"]
        assert watchers(server) == 0


async def test_append_in_the_same_event_loop_iteration_is_not_missed(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t", 1)
        async with client_of(server) as producer:
            for offset in range(30):
                request = fetch_request({("t", 0): offset}, max_wait_ms=LONG_MS)
                # Both frames arrive before the loop polls its sockets again.
                fetching = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
                records = {("t", 0): batch(b"a")}
                producing = await producer.send(ApiKey.PRODUCE, 9, produce_request(records))
                answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, fetching)
                assert partitions_of(answer)["t", 0].high_watermark == offset + 1
                await producer.receive(ApiKey.PRODUCE, 9, producing)


async def test_min_bytes_counts_over_all_partitions(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t", 3)
        positions = {("t", index): 0 for index in range(3)}
        request = fetch_request(positions, max_wait_ms=LONG_MS, min_bytes=3 * BATCH_BYTES)
        correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
        await until_waiting(server, 3)
        async with client_of(server) as producer:
            for index in (0, 2, 2):
                assert watchers(server) == 3
                await append(producer, "t", batch(b"x" * 100), partition=index)
        answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
        sizes = [len(result.records) for result in partitions_of(answer).values()]
        assert sizes == [BATCH_BYTES, 0, 2 * BATCH_BYTES]


async def test_fetch_times_out_with_less_than_min_bytes(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        loop = asyncio.get_running_loop()
        began = loop.time()
        request = fetch_request({("t", 0): 0}, max_wait_ms=SHORT_MS, min_bytes=10_000)
        correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
        await until_waiting(server)
        async with client_of(server) as producer:
            await append(producer, "t", batch(b"b"))
        answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
        assert loop.time() - began >= SHORT_MS / 1000
        assert values_in(partitions_of(answer)["t", 0].records) == [b"a", b"b"]
        assert watchers(server) == 0


async def test_waiting_fetch_leaves_no_garbage_cycle(tmp_path):
    """A cycle (wirebroker/base/gc_tuning.py) would retain all partitions of a follower."""
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        gc.collect()
        gc.disable()
        try:
            earlier = {id(item) for item in gc.get_objects() if isinstance(item, FetchWait)}
            for _ in range(3):
                await fetch(client, "t", 0, max_wait_ms=SHORT_MS)
            await until(lambda: not watchers(server))
            alive = [item for item in gc.get_objects() if isinstance(item, FetchWait)]
            waits = [item for item in alive if id(item) not in earlier]
            assert len(waits) <= 1, "the session may know the last one"
        finally:
            gc.enable()


async def test_min_bytes_above_max_bytes_does_not_wait_forever(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        await append(client, "t", batch(b"x" * 1_000))
        request = fetch_request(
            {("t", 0): 0}, max_wait_ms=LONG_MS, min_bytes=100_000, max_bytes=500
        )
        answer = await ask(client, request)
        assert values_in(partitions_of(answer)["t", 0].records) == [b"x" * 1_000]


async def test_zero_min_bytes_or_zero_wait_is_answered_at_once(tmp_path):
    async with broker_at(tmp_path) as (_, client):
        await create_topic(client, "t")
        await ask(client, fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS, min_bytes=0))
        await ask(client, fetch_request({("t", 0): 0}, max_wait_ms=0, min_bytes=1))
        await ask(client, fetch_request({}, max_wait_ms=LONG_MS))


async def test_topic_deletion_wakes_waiting_fetches(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        for version in (FETCH_VERSION, 16):
            async with client_of(server) as other:
                topic_id = await create_topic(other, "t")
                topic = "t" if version == FETCH_VERSION else topic_id
                request = fetch_request({(topic, 0): 0}, max_wait_ms=LONG_MS)
                correlation_id = await client.send(ApiKey.FETCH, version, request)
                await until_waiting(server)
                await delete_topic(other, "t")
            answer = await client.receive(ApiKey.FETCH, version, correlation_id)
            (result,) = answer.responses[0].partitions
            assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_failed_directory_wakes_waiting_fetches(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t")
        request = fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS)
        for version, code in (
            (FETCH_VERSION, ErrorCode.KAFKA_STORAGE_ERROR),
            (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ):
            correlation_id = await client.send(ApiKey.FETCH, version, request)
            if version == FETCH_VERSION:
                await until_waiting(server)
                replicas = broker_of(server).replicas
                replicas.directory_failed(replicas.directories[0], OSError(5, "broken"))
            answer = await client.receive(ApiKey.FETCH, version, correlation_id)
            assert partitions_of(answer)["t", 0].error_code == code


async def test_a_read_that_fails_takes_the_directory_offline(tmp_path):
    disk = FailingFiles()

    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a", b"b"))
        await append(client, "t", batch(b"c"))
        disk.fail(tmp_path / "t-0", "read")
        result = await fetch(client, "t", 1)
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not broker_of(server).replicas.directories[0].is_online


@pytest.mark.parametrize("call", ["read", "send"])
async def test_a_file_that_cannot_be_sent_takes_the_directory_offline(tmp_path, call):
    disk = FailingFiles()

    async with running(tmp_path, files=disk) as server:
        async with client_of(server) as client:
            await create_topic(client, "t")
            await append(client, "t", batch(b"a"))
            await fetch(client, "t", 0)  # no header has to be read after this
            disk.fail(tmp_path / "t-0", call)
            await client.send(ApiKey.FETCH, FETCH_VERSION, fetch_request({("t", 0): 0}))
            assert await client.is_cut_off()
        disk.broken.clear()
        async with client_of(server) as client:
            result = await fetch(client, "t", 0)
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR


# -- sessions and size --


async def test_session_omits_unchanged_and_waits_for_all_partitions(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t", 3)
        positions = {("t", index): 0 for index in range(3)}
        answer = await ask(client, fetch_request(positions, session=(0, 0)))
        session = answer.session_id
        assert session != 0
        assert len(partitions_of(answer)) == 3
        answer = await ask(client, fetch_request({}, session=(session, 1)))
        assert (answer.error_code, answer.session_id, answer.responses) == (0, session, [])
        request = fetch_request({}, session=(session, 2), max_wait_ms=LONG_MS)
        correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
        await until_waiting(server, 3)
        async with client_of(server) as producer:
            await append(producer, "t", batch(b"a"), partition=1)
        answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
        assert values_in(partitions_of(answer)["t", 1].records) == [b"a"]
        assert len(partitions_of(answer)) == 1
        dropped = fetch_request({("t", 1): 1}, session=(session, 3), forgotten=[("t", 0)])
        await ask(client, dropped)
        answer = await ask(client, fetch_request({}, session=(session, 7)))
        assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        answer = await ask(client, fetch_request({}, session=(session + 1, 1)))
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_thousands_of_partitions_take_the_slow_path_same_result(tmp_path):
    count = 2_500  # too many for one slice, in a frame that is parsed in a thread

    with memory_directory(tmp_path) as directory:
        async with broker_at(directory) as (server, client):
            await create_topic(client, "t", count)
            await append(client, "t", batch(b"a"), partition=7)
            positions = {("t", index): 0 for index in range(count)}
            answer = await ask(client, fetch_request(positions, session=(0, 0)))
            session = answer.session_id
            partitions = partitions_of(answer)
            assert [index for _, index in partitions] == list(range(count))
            assert values_in(partitions["t", 7].records) == [b"a"]
            # The next request is short, but its session is large.
            request = fetch_request({("t", 7): 1}, session=(session, 1), max_wait_ms=LONG_MS)
            correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
            await until_waiting(server, count)
            async with client_of(server) as producer:
                await append(producer, "t", batch(b"b"), partition=2_400)
            answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
            assert list(partitions_of(answer)) == [("t", 2_400)]
            assert watchers(server) == 0
            request = fetch_request({}, session=(session, 2), max_wait_ms=SHORT_MS)
            answer = await ask(client, request)
            assert list(partitions_of(answer)) == [("t", 2_400)], "which was not fetched further"
            request = fetch_request(positions, session=(session, 9))
            answer = await ask(client, request)
            assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


async def test_response_being_sent_survives_topic_deletion(tmp_path):
    async with broker_at(tmp_path) as (server, client):
        await create_topic(client, "t", max_message_bytes=str(64 << 20))
        value = b"x" * (20 << 20)
        await append(client, "t", batch(value))
        request = fetch_request({("t", 0): 0}, partition_max_bytes=64 << 20)
        # Far more than the sockets' buffers hold: the send continues while the files are moved
        # away.
        correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
        async with client_of(server) as other:
            await delete_topic(other, "t")
        answer = await client.receive(ApiKey.FETCH, FETCH_VERSION, correlation_id)
        assert values_in(partitions_of(answer)["t", 0].records) == [value]
