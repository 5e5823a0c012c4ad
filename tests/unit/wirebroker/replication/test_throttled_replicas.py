"""Replicas that are copied within a quota."""

from __future__ import annotations

import pytest

from tests.support.replicas.broker_cluster import Cluster
from tests.support.tools.waiting import until
from tests.unit.wirebroker.replication.replication_kit import are_equal, held, until_equal
from wirebroker.quotas.replication_quotas import ReplicationQuota
from wirebroker.replication.followed_partition import FollowedPartition


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_returning_replica_is_copied_within_its_quota(tmp_path, side, monkeypatch):
    delays: list[float] = []
    delay_s = ReplicationQuota.delay_s

    def noted_delay_s(quota: ReplicationQuota) -> float:
        delay = delay_s(quota)
        if delay:
            delays.append(delay)
        return delay

    monkeypatch.setattr(ReplicationQuota, "delay_s", noted_delay_s)
    settings = {f"{side}.replication.throttled.rate": "20000", "replica.fetch.max.bytes": "2000"}
    async with Cluster(tmp_path, node_ids=(1, 2), settings=settings) as cluster:
        cluster.create_topic((1, 2), (1, 2))
        cluster.set_config(f"{side}.replication.throttled.replicas", "0:1,0:2")
        await held(cluster, 1, 2)
        await cluster.kill(2)
        for index in (0, 1):
            for _ in range(15):
                await cluster[1].produce(b"x" * 2000, index=index)
        await cluster.start(2)
        await until_equal(cluster, 1, 2, index=1)
        slow = cluster[1].partition(), [cluster[2].partition()]
        assert not are_equal(*slow), "the quota names the other partition alone"
        await until_equal(cluster, 1, 2)
        await until(lambda: set(cluster.state().isr) == {1, 2})
        assert delays
        delays.clear()
        # In-sync replicas stay in sync at any rate.
        for _ in range(15):
            await cluster[1].produce(b"x" * 2000)
        await until_equal(cluster, 1, 2)
        assert not delays


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_throttled_replica_waits_until_its_rate_is_removed(tmp_path, side, monkeypatch):
    refused: list[float] = []
    delay_s = ReplicationQuota.delay_s

    def noted_delay_s(quota: ReplicationQuota) -> float:
        delay = delay_s(quota)
        if delay:
            refused.append(delay)
        return delay

    monkeypatch.setattr(ReplicationQuota, "delay_s", noted_delay_s)
    rate = f"{side}.replication.throttled.rate"
    settings = {
        rate: "1",
        "replication.quota.window.num": "1000",
        "replica.fetch.max.bytes": "2000",
        "replica.fetch.backoff.ms": "1",
        "replica.fetch.wait.max.ms": "1",
    }
    async with Cluster(tmp_path, node_ids=(1, 2), settings=settings) as cluster:
        cluster.create_topic((1, 2))
        cluster.set_config(f"{side}.replication.throttled.replicas", "0:1,0:2")
        await held(cluster, 1, 2)
        await cluster.kill(2)
        for _ in range(9):
            await cluster[1].produce(b"x" * 2000)
        await cluster.start(2)
        await held(cluster, 2)
        await until(lambda: len(refused) > 50)
        # The rate allows one fetch. Its response is lost if the leader's epoch has changed
        # meanwhile.
        assert cluster[2].partition().log.log_end_offset <= 1
        for member in cluster.members.values():
            member.replication.use_config(
                cluster.config.with_dynamic(
                    cluster_wide={rate: "9223372036854775807"}, this_broker={}
                )
            )
        await until_equal(cluster, 1, 2)
        await until(lambda: set(cluster.state().isr) == {1, 2})


async def test_a_throttled_partition_pauses_even_if_the_backoff_is_zero(tmp_path):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        followed = FollowedPartition(cluster[2].partition())
    followed.throttle(now=5.0, pause_s=0.0)
    assert followed.not_before > 5.0
    followed.throttle(now=5.0, pause_s=1.0)
    assert followed.not_before == 6.0
    assert followed.failures == 0
