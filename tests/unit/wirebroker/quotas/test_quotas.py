"""Quotas in force: throttle times, the length of muting, and exempt clients."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.raw_client import RawClient
from tests.support.protocol.requests import append, create_topic, fetch_request, produce_request
from tests.support.records.batches import batch
from tests.support.replicas.roles import lead
from tests.support.tools.waiting import until
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import decode_response, encode_response, response_message
from wirebroker.net.frames.protocol import frame_answer
from wirebroker.quotas.throttle_field import write_throttle_time
from wirebroker.replica.replica_state import ACKS_ALL
from wirebroker.storage.files import FileSlice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from wirebroker.broker.server import Server

# A window of two seconds, at least one of which counts.
SHORT = {"quota.window.num": "2", "controller.quota.window.num": "2"}
MINE = {"user": "ANONYMOUS"}


async def alter(
    client: RawClient, entity: Mapping[str, str | None], **quotas: float | None
) -> None:
    ops = [
        {"key": key, "value": value or 0.0, "remove": value is None}
        for key, value in quotas.items()
    ]
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()]
    request = {"entries": [{"entity": parts, "ops": ops}], "validate_only": False}
    answer = await client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    assert [entry.error_code for entry in answer.entries] == [0]


@contextlib.asynccontextmanager
async def limited(path: Path, **quotas: float) -> AsyncIterator[tuple[Server, RawClient]]:
    async with running(path, settings=SHORT) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"x" * 5000))
        if quotas:
            await alter(client, MINE, **quotas)
        yield server, client


async def timed(client: RawClient, key: ApiKey, version: int, request: Any) -> tuple[Any, float]:
    began = asyncio.get_running_loop().time()
    answer = await client.ask(key, version, request)
    return answer, asyncio.get_running_loop().time() - began


@pytest.mark.parametrize("version", [3, 8, 9, 12])
async def test_throttled_produce_is_answered_then_the_connection_is_muted(
    tmp_path: Path, version: int
) -> None:
    async with limited(tmp_path, producer_byte_rate=4000) as (server, client):
        request = produce_request({("t", 0): batch(b"x" * 5000)})
        answer, _ = await timed(client, ApiKey.PRODUCE, version, request)
        [topic] = answer.responses
        assert topic.partition_responses[0].error_code == 0, "the sent records are stored"
        assert 200 < answer.throttle_time_ms < 1500
        _, silent_s = await timed(client, ApiKey.API_VERSIONS, 0, {})
        assert silent_s > (answer.throttle_time_ms - 100) / 1000
        throttled = broker_of(server).quotas.produced
        assert (throttled.throttled_ms, throttled.throttled_count) == (answer.throttle_time_ms, 1)
        async with client_of(server) as other:
            _, soon_s = await timed(other, ApiKey.API_VERSIONS, 0, {})
            assert soon_s < silent_s, "others are served meanwhile"


async def test_repeated_produce_on_the_fast_path_is_charged(tmp_path: Path) -> None:
    async with limited(tmp_path, producer_byte_rate=100_000) as (server, client):
        request = produce_request({("t", 0): batch(b"x" * 30_000)}, acks=1)
        times = [(await client.ask(ApiKey.PRODUCE, 12, request)).throttle_time_ms for _ in range(4)]
        assert times[:3] == [0, 0, 0]
        assert times[3] > 0
        assert broker_of(server).quotas.produced.throttled_count == 1


async def test_produce_waiting_for_followers_is_charged_when_answered(tmp_path: Path) -> None:
    async with limited(tmp_path, producer_byte_rate=100_000) as (server, client):
        partition = broker_of(server).replicas.find("t", b"", by_id=False)[0][0]
        lead(partition, replicas=(1, 2))
        request = produce_request({("t", 0): batch(b"x" * 30_000)})
        times: list[int] = []
        for offset in range(2, 6):
            asking = asyncio.create_task(client.ask(ApiKey.PRODUCE, 12, request))
            await until(lambda: partition.watcher_count)
            partition.update_follower(2, fetch_offset=offset, log_start_offset=0, broker_epoch=-1)
            times.append((await asking).throttle_time_ms)
        assert times[:3] == [0, 0, 0]
        assert times[3] > 0


async def test_produce_of_a_disconnected_client_is_charged(tmp_path: Path) -> None:
    async with limited(tmp_path, producer_byte_rate=100_000) as (server, client):
        partition = broker_of(server).replicas.find("t", b"", by_id=False)[0][0]
        lead(partition, replicas=(1, 2))
        table, produced = server.reception.table, broker_of(server).quotas.produced
        assert table is not None
        async with client_of(server) as other:
            for offset, size in enumerate((10, 10, 500_000), 2):
                request = produce_request({("t", 0): batch(b"x" * size)})
                sent = await other.send(ApiKey.PRODUCE, 12, request)
                await until(lambda: partition.watcher_count)
                if offset == 4:
                    assert len(partition.deferred_responses(ACKS_ALL)) == 1, "on the fast path"
                    other.reset()
                    await until(lambda: len(table) == 1)
                partition.update_follower(
                    2, fetch_offset=offset, log_start_offset=0, broker_epoch=-1
                )
                if offset < 4:
                    await other.receive(ApiKey.PRODUCE, 12, sent)
        await client.ask(ApiKey.PRODUCE, 12, produce_request({("t", 0): batch(b"x")}, acks=1))
        assert produced.throttled_count >= 1


async def test_produce_without_a_response_mutes_the_connection(tmp_path: Path) -> None:
    async with limited(tmp_path, producer_byte_rate=4000, request_percentage=0.001) as (_, client):
        request = produce_request({("t", 0): batch(b"x" * 4900)}, acks=0)
        await client.send(ApiKey.PRODUCE, 12, request)
        _, silent_s = await timed(client, ApiKey.API_VERSIONS, 0, {})
        assert silent_s > 0.15


@pytest.mark.parametrize("wait_ms", [0, 50])
async def test_fetch_over_quota_is_empty_and_complete_after_the_wait(
    tmp_path: Path, wait_ms: int
) -> None:
    async with limited(tmp_path, consumer_byte_rate=6000) as (_, client):
        request = fetch_request({("t", 0): 0}, max_wait_ms=wait_ms, session=(0, 0))
        first = await client.ask(ApiKey.FETCH, 12, request)
        assert (first.throttle_time_ms, len(first.responses)) == (0, 1)
        again = fetch_request({("t", 0): 0}, session=(first.session_id, 1), max_wait_ms=wait_ms)
        second = await client.ask(ApiKey.FETCH, 12, again)
        assert second.throttle_time_ms > 300
        assert (second.error_code, second.responses) == (0, [])
        assert second.session_id == first.session_id
        third, silent_s = await timed(
            client, ApiKey.FETCH, 12, fetch_request({("t", 0): 0}, session=(first.session_id, 2))
        )
        assert silent_s > (second.throttle_time_ms - 100) / 1000
        assert third.error_code == 0


async def test_batch_over_quota_delays_other_partitions(
    tmp_path: Path,
) -> None:
    async with limited(tmp_path, consumer_byte_rate=2000) as (_, client):
        answer = await client.ask(ApiKey.FETCH, 12, fetch_request({("t", 0): 0}))
        assert answer.throttle_time_ms > 0
        assert answer.responses == []


async def test_follower_fetch_is_not_charged_to_a_client(tmp_path: Path) -> None:
    async with limited(tmp_path, consumer_byte_rate=1, request_percentage=0.001) as (_, client):
        request = {**fetch_request({("t", 0): 0}), "replica_id": 2}
        answer = await client.ask(ApiKey.FETCH, 12, request)
        assert answer.throttle_time_ms == 0


async def test_request_time_is_charged_up_to_one_sample(
    tmp_path: Path,
) -> None:
    async with limited(tmp_path, request_percentage=0.0001) as (server, client):
        answer, _ = await timed(client, ApiKey.LIST_GROUPS, 4, {})
        assert 0 < answer.throttle_time_ms <= 1000
        times = broker_of(server).quotas.request_time
        assert times.throttled_count >= 1
        async with client_of(server) as other:
            request = fetch_request({("t", 0): 0}, max_wait_ms=100, min_bytes=1 << 20)
            assert (await other.ask(ApiKey.FETCH, 12, request)).responses == []


async def test_unsent_records_are_not_charged(tmp_path: Path) -> None:
    rates = {"consumer_byte_rate": 6000, "request_percentage": 0.0001}
    async with limited(tmp_path, **rates) as (server, client):
        await client.ask(ApiKey.LIST_GROUPS, 4, {})
        async with client_of(server) as other:
            request = fetch_request({("t", 0): 0})
            assert (await other.ask(ApiKey.FETCH, 12, request)).responses == []
        fetched = broker_of(server).quotas.fetched
        now_ms = broker_of(server).clock.monotonic() * 1000
        assert fetched.delay_ms(("ANONYMOUS", ""), now_ms) == 0
        assert fetched.count(("ANONYMOUS", ""), 5900, now_ms) == 0


@pytest.mark.parametrize(("version", "code"), [(7, ErrorCode.THROTTLING_QUOTA_EXCEEDED), (5, 0)])
async def test_topics_over_quota_are_refused_if_the_client_knows_the_error(
    tmp_path: Path, version: int, code: int
) -> None:
    async with limited(tmp_path, controller_mutation_rate=10) as (server, client):
        topics = [
            {"name": name, "num_partitions": 21, "replication_factor": 1} for name in ("a", "b")
        ]
        answer = await client.ask(
            ApiKey.CREATE_TOPICS, version, {"topics": topics, "timeout_ms": 1000}
        )
        assert [topic.error_code for topic in answer.topics] == [0, code]
        assert answer.throttle_time_ms > 0
        names = broker_of(server).metadata.image.topics.keys()
        assert names == ({"t", "a"} if code else {"t", "a", "b"})


async def test_connections_over_the_ip_quota_are_closed(
    tmp_path: Path,
) -> None:
    async with limited(tmp_path) as (server, client):
        await alter(client, {"ip": "127.0.0.1"}, connection_creation_rate=1)
        # Two samples of a second (SHORT): as in Apache Kafka, one of them may be used at once.
        opened = [await RawClient.connect(server.address) for _ in range(2)]
        try:
            await opened[0].ask(ApiKey.API_VERSIONS, 0, {})
            assert await opened[1].is_closed()
            assert server.metrics.connections_throttled == 1
        finally:
            for connection in opened:
                await connection.close()
        await alter(client, {"ip": "127.0.0.1"}, connection_creation_rate=None)
        async with client_of(server) as other:
            await other.ask(ApiKey.API_VERSIONS, 0, {})


async def test_clients_without_a_quota_are_not_throttled(
    tmp_path: Path,
) -> None:
    async with limited(tmp_path) as (server, client):
        await alter(client, {"client-id": "greedy"}, producer_byte_rate=1)
        request = produce_request({("t", 0): batch(b"x" * 5000)})
        answer = await client.ask(ApiKey.PRODUCE, 12, request)
        assert answer.throttle_time_ms == 0
        assert broker_of(server).quotas.has_quotas
        await alter(client, {"client-id": "greedy"}, producer_byte_rate=None)
        assert not broker_of(server).quotas.has_quotas


async def test_quotas_are_in_force_after_a_restart(tmp_path: Path) -> None:
    async with limited(tmp_path, producer_byte_rate=4000):
        pass
    async with running(tmp_path, settings=SHORT) as server, client_of(server) as client:
        request = produce_request({("t", 0): batch(b"x" * 5000)})
        assert (await client.ask(ApiKey.PRODUCE, 12, request)).throttle_time_ms > 0


def throttled_answers() -> list[tuple[ApiKey, int]]:
    """Return the responses that have a throttle time, in each version."""
    return [
        (key, version)
        for key in SPOKEN_VERSIONS
        if "throttle_time_ms" in response_message(key).struct_class.FIELD_NAMES
        for version in response_message(key).versions
    ]


@pytest.mark.parametrize(("key", "version"), throttled_answers())
def test_throttle_time_is_set_in_every_response_with_the_field(key: ApiKey, version: int) -> None:
    header = bytes(4) + (b"\x00" if version >= SPOKEN_VERSIONS[key].first_flexible else b"")
    if key is ApiKey.API_VERSIONS:
        header = bytes(4)
    body = header + encode_response(key, version, {})
    answer: list[Any] = [len(body).to_bytes(4) + body]
    write_throttle_time(answer, key, version, 1234)
    data = b"".join(answer)
    assert int.from_bytes(data[:4]) == len(data) - 4 == len(body)
    throttle_time_ms = decode_response(key, version, data, 4 + len(header)).throttle_time_ms
    has_field = encode_response(key, version, {"throttle_time_ms": 1}) != encode_response(
        key, version, {}
    )
    assert throttle_time_ms == (1234 if has_field else 0)


@pytest.mark.parametrize("count", [1, 3000])
def test_throttle_time_is_set_in_a_response_of_several_pieces(count: int) -> None:
    """The head of a long response is a separate piece."""
    brokers = [{"broker_id": number, "host": "host" * 5} for number in range(count)]
    body = encode_response(ApiKey.DESCRIBE_CLUSTER, 2, {"brokers": brokers})
    answer = frame_answer(7, [body], is_flexible=True)
    assert len(answer) == (1 if count == 1 else 2)
    write_throttle_time(answer, ApiKey.DESCRIBE_CLUSTER, 2, 1234)
    data = b"".join(bytes(piece) for piece in answer if not isinstance(piece, FileSlice))
    response = decode_response(ApiKey.DESCRIBE_CLUSTER, 2, data, 9)
    assert (response.throttle_time_ms, len(response.brokers)) == (1234, count)
