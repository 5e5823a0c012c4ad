"""Clusters that a console's user may see only in part, or that lose a broker."""

from __future__ import annotations

import asyncio

from tests.support.brokers.collectors import collecting, snapshot_when
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.security.acls import AccessRule, create_acls
from wirebroker.client.topics.topics import create_topics
from wirebroker.console.model.snapshot import ClusterStatus, ProblemLevel
from wirebroker.testing import Cluster

# All clients are the user ANONYMOUS, whose rights a deny rule takes.
SECURED = {
    **ONE_NODE,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def denied(resource_type: str, name: str, operation: str) -> AccessRule:
    return AccessRule(resource_type, name, "literal", "User:ANONYMOUS", "*", operation, "deny")


async def test_topics_that_the_user_may_not_see_are_reported(tmp_path):
    async with running(tmp_path, settings=SECURED) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as c:
            await create_topics(c.client, {"orders": 1, "secret": 1}, configs={})
            await snapshot_when(c, lambda s: s.is_complete and "secret" in s.topics)
            await create_acls(c.client, [denied("topic", "secret", "all")])
            snapshot = await snapshot_when(c, lambda s: s.hidden)
            assert "secret" not in snapshot.topics
            assert snapshot.hidden is not None
            assert "secret cannot be described" in snapshot.hidden


async def test_a_cluster_that_refuses_names_what_cannot_be_read(tmp_path):
    async with running(tmp_path, settings=SECURED) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as c:
            await snapshot_when(c, lambda s: s.is_complete)
            await create_acls(c.client, [denied("cluster", "kafka-cluster", "describe")])
            snapshot = await snapshot_when(
                c, lambda s: s.hidden and any(p.what.startswith("log dir") for p in s.problems)
            )
            assert snapshot.status is ClusterStatus.OK
            assert snapshot.hidden is not None
            assert "may not describe the cluster" in snapshot.hidden
            levels = {p.level for p in snapshot.problems if p.kind == "permission"}
            assert levels == {ProblemLevel.UNKNOWN}
            assert snapshot.quorum is not None
            assert snapshot.quorum.failure is None


def test_a_broker_that_stops_is_a_problem_with_its_partitions():
    async def watch(cluster: Cluster) -> None:
        async with collecting(cluster.bootstrap_servers) as c:
            await snapshot_when(
                c, lambda s: s.is_complete and "orders" in s.topics and len(s.brokers) == 3
            )
            node = cluster.nodes[-1]
            await asyncio.to_thread(node.kill)
            await snapshot_when(
                c, lambda s: any("acks=all is refused" in p.what for p in s.problems)
            )
            snapshot = await snapshot_when(c, lambda s: s.under_replicated_count)
            assert "partition" in {problem.kind for problem in snapshot.problems}
            name = str(node.id)
            snapshot = await snapshot_when(
                c, lambda s: any(p.kind == "broker" and name in p.names for p in s.problems)
            )
            assert snapshot.status is ClusterStatus.OK

    with Cluster(3) as cluster:
        cluster.create_topic("orders", 2, config={"min.insync.replicas": 3})
        asyncio.run(watch(cluster))


def test_a_broker_that_hangs_does_not_hide_the_cluster():
    async def watch(cluster: Cluster) -> None:
        properties = {"request.timeout.ms": "1000"}
        async with collecting(cluster.bootstrap_servers, properties) as c:
            await snapshot_when(c, lambda s: s.is_complete and len(s.brokers) == 3)
            # The one that the console asks first.
            host_and_port = cluster.bootstrap_servers.split(",")[0]
            (node,) = [n for n in cluster.nodes if n.bootstrap_servers == host_and_port]
            await asyncio.to_thread(node.pause)
            name = str(node.id)
            await snapshot_when(
                c,
                lambda s: (
                    s.status is ClusterStatus.OK
                    and any(p.kind == "broker" and name in p.names for p in s.problems)
                ),
            )
            await asyncio.to_thread(node.resume)

    with Cluster(3) as cluster:
        asyncio.run(watch(cluster))
