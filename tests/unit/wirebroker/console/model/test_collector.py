"""A collector on a broker."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.support.brokers.collectors import collecting, snapshot_when
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import commit
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics, delete_topics
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.model import collector, details
from wirebroker.console.model.snapshot import ClusterStatus


def bootstrap_of(server) -> str:
    host, port = server.address
    return f"{host}:{port}"


@contextlib.asynccontextmanager
async def broker_and_collector(directory):
    async with (
        running(directory, settings=ONE_NODE) as server,
        collecting(bootstrap_of(server)) as c,
    ):
        yield c


async def write(client, topic: str, count: int) -> None:
    writer = TopicWriter(client, topic, Codec.NONE)
    await writer.open()
    await writer.write([(0, (None, b"x" * 100, ())) for _ in range(count)])


async def test_topics_have_sizes_counts_and_rates(tmp_path):
    async with broker_and_collector(tmp_path) as c:
        await create_topics(c.client, {"orders": 3}, configs={})
        await write(c.client, "orders", 10)
        await snapshot_when(c, lambda s: s.topics and s.topics["orders"].record_count == 10)
        await write(c.client, "orders", 5)
        snapshot = await snapshot_when(
            c,
            lambda s: (
                s.topics["orders"].record_count == 15
                and s.topics["orders"].records_per_s
                and (s.topics["orders"].size_bytes or 0) > 1500
                and s.topics["orders"].bytes_per_s
            ),
        )
        topic = snapshot.topics["orders"]
        assert (topic.partition_count, topic.replication_factor, len(topic.topic_id)) == (3, 1, 22)
        first, second, _ = topic.partitions
        assert (first.start_offset, first.end_offset, first.leader, first.isr) == (0, 15, 1, (1,))
        assert (second.end_offset, second.size_bytes, second.records_per_s) == (0, 0, 0.0)
        assert snapshot.partition_count >= 3
        assert snapshot.history.points("topic", "orders", "records_per_s")
        assert snapshot.history.points("topic", "orders", "size_bytes")[-1][1] > 0
        assert snapshot.history.points("cluster", "", "size_bytes")
        assert snapshot.history.points("topic", "missing", "lag") == []


async def test_a_metrics_page_that_hangs_does_not_delay_polls(tmp_path, monkeypatch):
    has_begun = asyncio.Event()

    async def hang(_cluster) -> None:
        has_begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(collector, "_CLIENTS", collector._CLIENTS._replace(run=hang))
    properties = {"wirebroker.metrics.urls": "1=http://127.0.0.1:1/metrics"}
    async with (
        running(tmp_path, settings=ONE_NODE) as server,
        collecting(bootstrap_of(server), properties) as c,
    ):
        async with asyncio.timeout(60):
            await has_begun.wait()
            await create_topics(c.client, {"orders": 1}, configs={})
            snapshot = await snapshot_when(c, lambda s: "orders" in s.topics)
        assert snapshot.status is ClusterStatus.OK


async def test_brokers_and_quorum_are_described(tmp_path):
    async with broker_and_collector(tmp_path) as c:
        snapshot = await snapshot_when(
            c, lambda s: s.quorum and s.brokers and s.brokers[1].log_dirs and s.brokers[1].version
        )
        broker = snapshot.brokers[1]
        assert snapshot.status is ClusterStatus.OK
        assert (broker.is_controller, broker.is_fenced, broker.version) == (True, False, "4.4")
        assert broker.log_dirs[0].error is None
        assert snapshot.quorum is not None
        assert (snapshot.quorum.leader_id, snapshot.quorum.failure) == (1, None)
        assert snapshot.problems == ()
        assert snapshot.hidden is None


async def test_a_group_without_members_lags(tmp_path):
    async with broker_and_collector(tmp_path) as c:
        await create_topics(c.client, {"orders": 2}, configs={})
        await write(c.client, "orders", 10)
        await commit(c.client, "billing", {TopicPartition("orders", 0): 4})
        snapshot = await snapshot_when(
            c, lambda s: "billing" in s.groups and s.groups["billing"].lag == 6 and s.problems
        )
        group = snapshot.groups["billing"]
        assert (group.kind, group.state, group.coordinator_id) == ("classic", "Empty", 1)
        assert snapshot.lag == 6
        assert snapshot.topics["orders"].groups == ("billing",)
        assert group.stuck == "it has no members, and 6 records wait"
        (partition,) = group.partitions
        assert (partition.committed, partition.end, partition.lag) == (4, 10, 6)
        assert partition.lag_s is not None
        (problem,) = snapshot.problems
        assert (problem.kind, problem.names) == ("group", ("billing",))
        await snapshot_when(c, lambda s: s.history.points("group", "billing", "lag"))
        await snapshot_when(c, lambda s: s.groups["billing"].members == ())
        assert (await details.group(c, "billing")).lag == 6


async def test_deleted_topics_disappear(tmp_path):
    async with broker_and_collector(tmp_path) as c:
        await create_topics(c.client, {"orders": 2}, configs={})
        await commit(c.client, "billing", {TopicPartition("orders", 0): 0})
        await snapshot_when(c, lambda s: s.topics and s.topics["orders"].groups)
        await delete_topics(c.client, ["orders"])
        snapshot = await snapshot_when(c, lambda s: "orders" not in s.topics)
        assert snapshot.groups["billing"].partitions == ()


async def test_a_cluster_that_does_not_run_is_a_failure_until_it_does(tmp_path):
    async with running(tmp_path, settings=ONE_NODE) as server:
        address = bootstrap_of(server)
    async with collecting(address) as c:
        snapshot = await snapshot_when(c, lambda s: s.status is ClusterStatus.FAILED)
        assert snapshot.failure is not None
        assert "no broker responds at" in snapshot.failure.what
        assert "connection refused" in snapshot.failure.what
        assert "check that its brokers run" in snapshot.failure.next_step
        again = {**ONE_NODE, "listeners": f"PLAINTEXT://{address}"}
        async with running(tmp_path, settings=again) as server:
            snapshot = await snapshot_when(c, lambda s: s.status is ClusterStatus.OK)
            assert snapshot.failure is None
        snapshot = await snapshot_when(c, lambda s: s.status is ClusterStatus.FAILED)
        assert snapshot.brokers, "the last values remain"


async def test_a_silent_cluster_fails_with_its_cause():
    async def keep_silent(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(keep_silent, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    properties = {"request.timeout.ms": "500"}
    async with server, collecting(f"{host}:{port}", properties) as c:
        assert c.snapshot.status is ClusterStatus.CONNECTING
        snapshot = await snapshot_when(c, lambda s: s.status is ClusterStatus.FAILED)
        assert snapshot.failure is not None
        assert "not connected within 0.5 s" in snapshot.failure.what


async def test_settings_that_cannot_be_used_are_a_failure():
    async with collecting("localhost:1", {"security.protocol": "TELEPATHY"}) as c:
        assert c.snapshot.status is ClusterStatus.FAILED
        assert c.snapshot.failure is not None
        assert "security.protocol must be one of" in c.snapshot.failure.what
        with pytest.raises(ClientError, match=r"security\.protocol must be"):
            _ = c.client


async def test_readers_of_a_stopped_collector_end():
    async with collecting("localhost:1") as c:
        with c.subscribe() as reader:
            number = (await reader.next()).number
            task = asyncio.create_task(c.newer_than(number + 1000))
            await c.stop()
            with pytest.raises(ClientError, match="has stopped"):
                await task


async def test_viewers_share_details(tmp_path):
    async with broker_and_collector(tmp_path) as c:
        await create_topics(c.client, {"orders": 1}, configs={"retention.ms": "1000"})
        first, second = await asyncio.gather(
            details.configs(c, "topic", "orders"), details.configs(c, "topic", "orders")
        )
        assert first is second
        (retention,) = [config for config in first if config.name == "retention.ms"]
        assert (retention.value, retention.is_set, retention.type) == ("1000", True, "long")
        assert retention.documentation
        with pytest.raises(ClientError, match=r"there is no topic|does not exist|no such topic"):
            await details.configs(c, "topic", "missing")
        with pytest.raises(ClientError, match="there is no group"):
            await details.group(c, "missing")
