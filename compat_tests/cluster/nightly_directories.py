"""Brokers of either kind, under controllers of either kind, start without one of their directories.

What lies there is led by the other broker, what lies elsewhere is served on; once the
directory is back it catches up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.cluster.own_controller import own_cluster
from compat_tests.cluster.test_log_directories import (
    PARTITIONS,
    QUICK,
    WAIT_S,
    held,
    in_sync,
    leaders,
    produce,
    two_directories,
)
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster
    from tests.support.brokers import Broker

pytestmark = [pytest.mark.java, pytest.mark.long]


def isrs(cluster: Cluster, topic: str, indexes: Collection[int]) -> list[set[int]]:
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=10)
    return [set(found.topics[topic].partitions[each].isrs) for each in indexes]


def start_without_a_directory(cluster: Cluster, broker: Broker, node_id: int, other: int) -> None:
    topic = f"kept-by-{node_id}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wanted = NewTopic(topic, PARTITIONS, replica_assignment=[[node_id, other]] * PARTITIONS)
    for future in admin.create_topics([wanted], operation_timeout=30).values():
        future.result(WAIT_S)
    eventually(lambda: in_sync(cluster, topic), timeout_s=WAIT_S)
    produce(cluster, topic)
    first, second = broker.data_dirs
    kept, lost = held(first, topic), held(second, topic)
    assert kept
    assert lost
    broker.stop()
    away = second.rename(second.with_name(f"away-{node_id}"))
    second.write_text("no directory")
    broker.start()
    eventually(lambda: isrs(cluster, topic, kept) == [{1, 2}] * len(kept), timeout_s=WAIT_S)
    assert isrs(cluster, topic, lost) == [{other}] * len(lost)
    assert leaders(cluster, topic, lost) == {other}
    assert held(first, topic) == kept
    produce(cluster, topic)
    broker.stop()
    second.unlink()
    away.rename(second)
    broker.start()
    eventually(lambda: in_sync(cluster, topic), timeout_s=WAIT_S)
    assert (held(first, topic), held(second, topic)) == (kept, lost)
    produce(cluster, topic)


@pytest.mark.timeout(600)
def test_under_kafkas_controller(start_cluster: StartCluster) -> None:
    cluster = start_cluster(settings=QUICK)
    java = cluster.java_broker(1, two_directories(cluster, 1))
    ours = cluster.wirebroker(2, two_directories(cluster, 2))
    start_without_a_directory(cluster, java, 1, 2)
    start_without_a_directory(cluster, ours, 2, 1)


@pytest.mark.timeout(600)
def test_under_our_controller(tmp_path: Path) -> None:
    cluster = own_cluster(tmp_path, QUICK)
    try:
        java = cluster.java_broker(1, two_directories(cluster, 1))
        ours = cluster.wirebroker(2, two_directories(cluster, 2))
        start_without_a_directory(cluster, java, 1, 2)
        start_without_a_directory(cluster, ours, 2, 1)
    finally:
        cluster.stop()
