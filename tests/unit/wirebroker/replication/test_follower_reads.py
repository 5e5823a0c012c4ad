"""Reads from followers, and errors of fetches with a replica id."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.records.batches import values_in
from tests.support.replicas.broker_cluster import Cluster
from tests.support.tools.waiting import until
from tests.unit.wirebroker.replication.replication_kit import fetch, held, isr_of, until_equal
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.table.replication import RACK_AWARE


async def test_fetch_errors_for_a_java_follower_are_in_kafkas_order(tmp_path):
    """The order of checks: epoch, leader, replica, divergence, then the range of offsets."""
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        for _ in range(3):
            await cluster[1].produce(b"a")
        leader = cluster[1]

        async def ask(offset: int, *, replica: int = 2, **fields: int) -> Any:
            state = {"replica_id": replica, "replica_epoch": -1}
            return await fetch(leader, offset, 18, replica_state=state, **fields)

        for epoch, code in ((1, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)):
            assert (await ask(3, current_leader_epoch=epoch)).error_code == code
        cluster.elect(1)
        await until(lambda: leader.partition().leader_epoch == 1)
        response = await ask(3, current_leader_epoch=0)
        assert response.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (response.current_leader.leader_id, response.current_leader.leader_epoch) == (1, 1)
        for fields, code in (
            ({"current_leader_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
            ({}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ):
            assert (await ask(0, replica=9, **fields)).error_code == code
        response = await ask(99, last_fetched_epoch=0)
        assert response.error_code == ErrorCode.NONE
        assert (response.diverging_epoch.epoch, response.diverging_epoch.end_offset) == (0, 3)
        assert (await ask(99)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        other = await fetch(cluster[2], 0, 18, replica_state={"replica_id": 1, "replica_epoch": 1})
        assert other.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_consumers_read_from_followers_up_to_their_high_watermark(tmp_path):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2)
        fetched = await fetch(cluster[2], 0)
        assert values_in(fetched.records) == [b"a"]
        assert (await fetch(cluster[2], 0, 10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        waiting = asyncio.create_task(fetch(cluster[2], 1, min_bytes=1, max_wait_ms=20_000))
        await until(lambda: cluster[2].partition().watcher_count)
        await cluster[1].produce(b"b")
        fetched = await waiting
        assert values_in(fetched.records) == [b"b"]


async def test_debugging_replica_id_gets_the_log_end_of_each_replica(tmp_path):
    """Replica id -2 (ListOffsetsRequest.DEBUGGING_REPLICA_ID); consumers are sent to the leader."""
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        assert await cluster[1].produce(b"a") == 0
        await until_equal(cluster, 1, 2)

        async def end_of(node_id: int, replica_id: int) -> tuple[int, int]:
            partition = {"partition_index": 0, "current_leader_epoch": 0, "timestamp": -1}
            topics = [{"name": "t", "partitions": [partition]}]
            request = {"replica_id": replica_id, "isolation_level": 0, "topics": topics}
            answer = await cluster[node_id].ask(ApiKey.LIST_OFFSETS, 7, request)
            (result,) = answer.topics[0].partitions
            return result.error_code, result.offset

        assert await end_of(1, -1) == await end_of(1, -2) == (0, 1)
        assert await end_of(2, -2) == (0, 1)
        assert await end_of(2, -1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_leader_returns_the_preferred_replica_of_the_clients_rack(tmp_path):
    settings = {"replica.selector.class": RACK_AWARE}
    async with Cluster(tmp_path, settings=settings) as cluster:
        cluster.create_topic((1, 2, 3))
        await held(cluster, 1, 2, 3)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2, 3)
        for rack, named, values in (
            ("rack-2", 2, []),
            ("rack-3", 3, []),
            ("rack-1", -1, [b"a"]),
            ("rack-9", -1, [b"a"]),
            ("", -1, [b"a"]),
        ):
            fetched = await fetch(cluster[1], 0, rack_id=rack)
            assert (fetched.preferred_read_replica, values_in(fetched.records)) == (named, values)
        await cluster.kill(3, is_noticed=False)
        await cluster[1].produce(b"b")  # which 3 lacks
        await until(lambda: isr_of(cluster[1]) == (1, 2))
        assert (await fetch(cluster[1], 0, rack_id="rack-3")).preferred_read_replica == -1
        fetched = await fetch(cluster[2], 0, rack_id="rack-2")
        assert values_in(fetched.records) == [b"a"]
