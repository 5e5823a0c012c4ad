"""ShareFetch and ShareAcknowledge on a broker with sockets; transcripts have Kafka's responses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.http.scrape_pages import HTTP, scrape, value
from tests.support.protocol.requests import append, create_topic, delete_topic
from tests.support.protocol.share_client import VERSION, acquired_in, share_broker
from tests.support.records.batches import batch
from tests.support.tools.waiting import until
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.quotas.quota_entity import CONSUMER_BYTE_RATE
from wirebroker.coordinator.share_partitions.record_state import RecordState

if TYPE_CHECKING:
    from pathlib import Path

ACCEPT, RELEASE = 1, 2


async def test_waiting_fetch_gets_new_records(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        waiting = asyncio.ensure_future(ann.acquired(wait_ms=60_000))
        await until(lambda: len(share.shares.shares) == 1)
        producer = await share.client()
        await append(producer, "t", batch(b"a", b"b"))
        assert await waiting == [(0, 1, 1)]


async def test_waiting_fetch_gets_released_records(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        await append(ann.client, "t", batch(b"a", b"b"))
        assert await ann.acquired() == [(0, 1, 1)]
        waiting = asyncio.ensure_future(bob.acquired(wait_ms=60_000))
        await until(lambda: len(share.shares.sessions) == 2)
        assert (await ann.acknowledge((1, 1, [RELEASE]))).error_code == 0
        assert await waiting == [(1, 1, 2)]


async def test_lost_connection_releases_records(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        await append(ann.client, "t", batch(b"a", b"b"))
        await ann.acquired()
        waiting = asyncio.ensure_future(bob.acquired(wait_ms=60_000))
        await until(lambda: len(share.shares.sessions) == 2)
        await ann.client.close()
        assert await waiting == [(0, 1, 2)]
        assert len(share.shares.sessions) == 1
        assert share.broker.metrics.share_session_evictions == 1
        await bob.client.close()
        # The group has no session here.
        await until(lambda: not share.shares.shares)


async def test_client_that_left_acquires_nothing(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        assert await bob.acquired(wait_ms=0) == []
        await ann.client.send(ApiKey.SHARE_FETCH, VERSION, ann.fetch_body(wait_ms=60_000))
        await until(lambda: len(share.shares.sessions) == 2)
        await ann.client.close()
        await until(lambda: len(share.shares.sessions) == 1)
        await append(bob.client, "t", batch(b"a"))
        assert await bob.acquired() == [(0, 0, 1)]


async def test_failed_write_is_rolled_back(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a", b"b"))
        await ann.acquired()
        share.persister.fails_with = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        result = await ann.acknowledge((0, 1, [ACCEPT]))
        assert result.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert result.error_message == "told to"
        share.persister.fails_with = None
        assert (await ann.acknowledge((0, 1, [ACCEPT]))).error_code == 0
        (write,) = share.persister.writes
        assert write.batches == ((0, 1, RecordState.ACKNOWLEDGED, 1),)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_outdated_share_partition_is_loaded_again(
    tmp_path: Path, error: ErrorCode, expected: ErrorCode
):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        await ann.acquired()
        share.persister.fails_with = error
        assert (await ann.acknowledge((0, 0, [ACCEPT]))).error_code == expected
        assert not share.shares.shares
        share.persister.fails_with = None
        assert await ann.acquired() == [(0, 0, 1)]


async def test_state_that_cannot_be_read_is_an_error_of_the_partition(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        share.persister.fails_with = ErrorCode.GROUP_ID_NOT_FOUND
        response = await ann.fetch(wait_ms=1)
        assert response.responses[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        share.persister.fails_with = None
        assert await ann.acquired() == [(0, 0, 1)]


async def test_withheld_records_are_not_delivered(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        for _ in range(3):
            await append(ann.client, "t", batch(b"a" * 10_000))
        share.broker.use_quotas({(("client-id", "raw"),): {CONSUMER_BYTE_RATE: 200.0}})
        first = await ann.fetch(max_records=1)
        assert acquired_in(first) == []
        assert first.throttle_time_ms > 0
        share.broker.use_quotas({})
        assert await bob.acquired() == [(0, 0, 1), (1, 2, 1)]


async def test_deleted_topic_has_no_share_partitions(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        await ann.acquired()
        producer = await share.client()
        await delete_topic(producer, "t")
        assert not share.shares.shares
        response = await ann.fetch((), wait_ms=1)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert response.responses[0].partitions[0].error_code == code
        await create_topic(producer, "t")
        response = await ann.fetch((), wait_ms=1)
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_sessions_beyond_the_limit_wait(tmp_path: Path):
    async with share_broker(
        tmp_path, group_share_max_share_sessions="1", group_share_max_size="1"
    ) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        await ann.acquired(wait_ms=0)
        response = await bob.fetch(wait_ms=1)
        assert response.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


async def test_partitions_take_turns(tmp_path: Path):
    async with share_broker(tmp_path, 2) as share:
        ann = await share.member("ann")
        for partition in (0, 1):
            for _ in range(4):
                await append(ann.client, "t", batch(b"a"), partition=partition)
        await ann.fetch((0, 1), min_bytes=1 << 20, wait_ms=50, max_records=2)
        for expected in (1, 0):
            response = await ann.fetch((), max_records=1)
            with_records = [
                result.partition_index
                for result in response.responses[0].partitions
                if result.acquired_records
            ]
            assert with_records == [expected]


async def test_long_acknowledgement_leaves_time_to_others(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        count = 5_000
        await append(ann.client, "t", batch(*[b"a"] * count))
        assert await ann.acquired(max_records=1) == [(0, count - 1, 1)]
        types = [ACCEPT, RELEASE] * (count // 2)
        assert (await ann.acknowledge((0, count - 1, types))).error_code == 0
        (write,) = share.persister.writes
        assert len(write.batches) == count


async def test_records_in_flight_are_metrics(tmp_path: Path):
    async with share_broker(tmp_path, 1, **HTTP) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a", b"b", b"c"))
        await append(ann.client, "t", batch(b"d"))
        assert await ann.acquired(batch_size=1) == [(0, 2, 1), (3, 3, 1)]
        page = await scrape(share.server)
        labels = {"group": "g", "topic": "t", "partition": "0"}
        name = "kafka_server_sharepartitionmetrics_inflight"
        assert value(page, f"{name}messagecount", **labels) == 4
        assert value(page, f"{name}batchcount", **labels) == 2
