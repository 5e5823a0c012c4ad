"""Groups of the consumer protocol whose coordinator moves between Apache Kafka and wirebroker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.cluster.group_reader import GROUP, Reader
from compat_tests.cluster.replicated_load import WAIT_S, Load, create, isrs, read, views
from tests.support.tools.waiting import eventually
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long]

TOPICS = ("t", "u")
WATCHED = (*TOPICS, CONSUMER_OFFSETS)
SETTINGS = {
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


def are_shared(readers: Sequence[Reader]) -> bool:
    owned = sorted(partition for reader in readers for partition in reader.owned)
    return owned == [(topic, 0) for topic in TOPICS] and all(reader.owned for reader in readers)


def coordinator_of(cluster: Cluster) -> int:
    """Return the leader of the only partition of the offsets topic."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    metadata = admin.list_topics(CONSUMER_OFFSETS, timeout=WAIT_S)
    return metadata.topics[CONSUMER_OFFSETS].partitions[0].leader


def committed(cluster: Cluster) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    try:
        partitions = [TopicPartition(topic, 0) for topic in TOPICS]
        return [partition.offset for partition in consumer.committed(partitions, timeout=WAIT_S)]
    finally:
        consumer.close()


def wait_until_it_goes_on(reader: Reader) -> None:
    count = len(reader.values)
    eventually(lambda: len(reader.values) > count, timeout_s=WAIT_S)


def restart(cluster: Cluster, readers: Sequence[Reader], node_id: int) -> int:
    """Let the other broker coordinate the group while a broker is down; return the coordinator."""
    broker = cluster.brokers[node_id]
    broker.stop()
    (other,) = set(cluster.brokers) - {node_id}
    wait_for_isrs(cluster, {other})
    coordinator = coordinator_of(cluster)
    for reader in readers:
        wait_until_it_goes_on(reader)
    broker.start()
    wait_for_isrs(cluster, {1, 2})
    return coordinator


def wait_for_isrs(cluster: Cluster, expected: set[int]) -> None:
    try:
        eventually(
            lambda: all(isr == expected for isr in isrs(cluster, WATCHED).values()),
            timeout_s=WAIT_S,
        )
    except AssertionError as error:
        raise AssertionError(views(cluster, WATCHED)) from error


def test_consumer_group_survives_moves_between_apache_kafka_and_wirebroker(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(settings=SETTINGS)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    create(cluster, dict.fromkeys(TOPICS, (1, 2)))
    with (
        Reader(cluster, *TOPICS, group_protocol="consumer") as first,
        Reader(cluster, *TOPICS, group_protocol="consumer") as second,
    ):
        readers = (first, second)
        coordinators: list[int] = []
        with Load(cluster, TOPICS) as load:
            eventually(lambda: are_shared(readers), timeout_s=WAIT_S)
            wait_for_isrs(cluster, {1, 2})
            for node_id in (1, 2, 1):
                load.go_on()
                coordinators.append(restart(cluster, readers, node_id))
                eventually(lambda: are_shared(readers), timeout_s=WAIT_S)
                for reader in readers:
                    wait_until_it_goes_on(reader)
        assert coordinators == [2, 1, 2]
        assert not load.failed
        acknowledged = set().union(*load.acknowledged.values())
        eventually(lambda: acknowledged <= {*first.values, *second.values}, timeout_s=WAIT_S)
    ends = [len(read(cluster, topic)) for topic in TOPICS]
    assert committed(cluster) == ends
