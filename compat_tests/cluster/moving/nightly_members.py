"""Consumer and share groups of every client, whose coordinators move between brokers.

pytest compat_tests/cluster/moving/nightly_members.py --long

Each of two brokers is stopped, killed (-9) or frozen (SIGSTOP) in turn, so that the coordinators
and the leaders of all partitions move: between two wirebrokers, between a wirebroker and Apache
Kafka, and between two brokers of Apache Kafka, for comparison. The checks are those of
compat_tests/groups: every record is processed, and none by two members at once.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.groups.clients import (
    CONFLUENT,
    FRANZ_GO,
    JAVA,
    SHARE_CONFLUENT,
    SHARE_FRANZ_GO,
    SHARE_JAVA,
    GroupClient,
    ShareClient,
)
from compat_tests.groups.group import group_on
from compat_tests.groups.share_group import share_group_on
from compat_tests.support import topics
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(1200)]

WAIT_S: Final = 120.0
SETTINGS: Final = {
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "min.insync.replicas": "1",
    "group.consumer.min.session.timeout.ms": "10000",
    "group.consumer.session.timeout.ms": "20000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "10000",
    "group.share.session.timeout.ms": "20000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
}
Kind = Literal["wirebroker", "apache"]
Fault = Literal["stop", "kill", "freeze"]
# Faults in this order, each of one broker.
FAULTS: Final[tuple[tuple[int, Fault], ...]] = (
    (1, "stop"),
    (2, "kill"),
    (1, "freeze"),
    (2, "stop"),
)


@pytest.fixture(
    params=[("apache", "wirebroker"), ("wirebroker", "wirebroker"), ("apache", "apache")],
    ids="-".join,
)
def cluster(start_cluster: StartCluster, request: pytest.FixtureRequest) -> Cluster:
    kinds: tuple[Kind, Kind] = request.param
    started = start_cluster(settings=SETTINGS)
    for node_id, kind in enumerate(kinds, start=1):
        if kind == "apache":
            started.java_broker(node_id)
        else:
            started.wirebroker(node_id)
    return started


def partitions_of(cluster: Cluster) -> dict[tuple[str, int], tuple[int, set[int]]]:
    """Return leader and ISR of each partition."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return {
        (name, number): (partition.leader, set(partition.isrs))
        for name, topic in admin.list_topics(timeout=WAIT_S).topics.items()
        for number, partition in topic.partitions.items()
    }


def wait_for_isrs(cluster: Cluster, expected: set[int]) -> None:
    """Wait until these brokers are in sync in every partition, and lead it."""

    def is_in_sync() -> bool:
        partitions = partitions_of(cluster).values()
        return all(isr == expected and leader in expected for leader, isr in partitions)

    try:
        eventually(is_in_sync, timeout_s=WAIT_S, poll_s=0.5)
    except AssertionError as error:
        raise AssertionError(f"not {expected}: {partitions_of(cluster)}") from error


@contextlib.contextmanager
def without(cluster: Cluster, node_id: int, fault: Fault) -> Iterator[None]:
    """Stop, kill or freeze a broker, so that the other leads all; let it return at the end."""
    wait_for_isrs(cluster, {1, 2})
    broker = cluster.brokers[node_id]
    if fault == "freeze":
        broker.freeze()
    elif fault == "kill":
        broker.kill9()
    else:
        broker.stop()
    try:
        wait_for_isrs(cluster, {1, 2} - {node_id})
        yield
    finally:
        if fault == "freeze":
            broker.thaw()
        else:
            broker.start()
    wait_for_isrs(cluster, {1, 2})


def in_each_state(cluster: Cluster, act: Callable[[], None]) -> None:
    """Act before and after each move of the coordinator."""
    act()
    for node_id, fault in FAULTS:
        with without(cluster, node_id, fault):
            act()
        act()


@pytest.mark.parametrize("client", [CONFLUENT, FRANZ_GO, JAVA], ids=str)
def test_members_of_the_consumer_protocol_go_on(
    cluster: Cluster, client: GroupClient, topic: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"replicas": 2, "patience_s": WAIT_S}
    with group_on(cluster.bootstrap, topic, tmp_path, **options) as group:
        members = [group.start(client, name, client.broker_assignors[0]) for name in ("a", "b")]

        def act() -> None:
            group.produce()
            group.wait_until_processed()
            group.wait_until_shared_by(*members)

        in_each_state(cluster, act)
        group.leave(members.pop())
        act()


@pytest.mark.parametrize("client", [SHARE_CONFLUENT, SHARE_FRANZ_GO, SHARE_JAVA], ids=str)
def test_members_of_share_groups_go_on(
    cluster: Cluster, client: ShareClient, topic: str, tmp_path: Path
) -> None:
    topics.create(cluster.bootstrap, topic, partitions=2, replicas=2)
    with share_group_on(
        cluster.bootstrap, f"share-{topic}", [topic], tmp_path, patience_s=WAIT_S
    ) as group:
        members = [group.start(client, name) for name in ("a", "b")]
        group.has_lost_counts = True

        def act() -> None:
            before = {member: member.done for member in members}
            group.produce()
            group.wait_until_all_is_delivered()
            assert any(member.done > count for member, count in before.items())

        in_each_state(cluster, act)
        group.leave(members.pop())
        act()
