"""A follower's waiting Fetch, which only appends wake.

As in Kafka's DelayedFetch, the next response carries a new high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of
from tests.support.protocol.requests import create_topic, fetch_request, produce_request
from tests.support.records.batches import batch, values_in
from tests.support.replicas.roles import lead
from tests.unit.wirebroker.api.data.test_fetch import (
    FETCH_VERSION,
    LONG_MS,
    broker_at,
    partitions_of,
    until_waiting,
)
from wirebroker.api.data.fetch_wait import FetchWait
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition

SMALL = batch(b"a")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    noted: list[int] = []
    on_news = FetchWait._on_change

    def note(wait: FetchWait, number: int) -> None:
        noted.append(number)
        on_news(wait, number)

    monkeypatch.setattr(FetchWait, "_on_change", note)
    return noted


async def write(client: RawClient, records: bytes) -> None:
    request = produce_request({("t", 0): records}, acks=1)
    answer = await client.ask(ApiKey.PRODUCE, 9, request)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


async def led(server: Server, client: RawClient) -> Partition:
    """Create t, followed by nodes 2 and 3, with a record that they have not fetched."""
    await create_topic(client, "t")
    partition = broker_of(server).replicas.find("t", b"", by_id=False)[0][0]
    lead(partition, replicas=(1, 2, 3), leader_epoch=0)
    await write(client, SMALL)
    return partition


async def follow(client: RawClient, server: Server, **fields: Any) -> int:
    """Send a Fetch of node 2, which has the record; return when it waits."""
    request = fetch_request({("t", 0): 1}, max_wait_ms=LONG_MS, **fields) | {"replica_id": 2}
    correlation_id = await client.send(ApiKey.FETCH, FETCH_VERSION, request)
    await until_waiting(server)
    return correlation_id


async def test_high_watermark_alone_wakes_no_follower_fetch(tmp_path, calls):
    async with broker_at(tmp_path) as (server, client), client_of(server) as follower:
        partition = await led(server, client)
        waiting = await follow(follower, server)
        partition.update_follower(3, fetch_offset=1, log_start_offset=0, broker_epoch=-1)
        assert partition.log.high_watermark == 1
        assert calls == []
        await write(client, batch(b"b"))
        answer = await follower.receive(ApiKey.FETCH, FETCH_VERSION, waiting)
        result = partitions_of(answer)["t", 0]
        assert (values_in(result.records), result.high_watermark) == ([b"b"], 1)
        assert calls == [0]
        await until_waiting(server, 0)


async def test_follower_fetch_with_min_bytes_sees_each_append(tmp_path, calls):
    async with broker_at(tmp_path) as (server, client), client_of(server) as follower:
        await led(server, client)
        waiting = await follow(follower, server, min_bytes=3 * len(SMALL))
        for _ in range(3):
            await write(client, SMALL)
        answer = await follower.receive(ApiKey.FETCH, FETCH_VERSION, waiting)
        assert values_in(partitions_of(answer)["t", 0].records) == [b"a"] * 3
        assert calls == [0] * 3


async def test_follower_fetch_fails_at_once_when_leadership_ends(tmp_path):
    async with broker_at(tmp_path) as (server, client), client_of(server) as follower:
        partition = await led(server, client)
        waiting = await follow(follower, server)
        partition.resign()
        partition.wake_watchers()
        answer = await follower.receive(ApiKey.FETCH, FETCH_VERSION, waiting)
        assert partitions_of(answer)["t", 0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
