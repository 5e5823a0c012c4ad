"""One of several log directories fails, with brokers and controllers of either kind."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clients.java import run
from compat_tests.cluster.own_controller import own_cluster
from compat_tests.cluster.test_membership import create, read, values
from compat_tests.cluster.test_membership import produce as send
from compat_tests.cluster.test_tools import REASSIGN
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster
    from tests.support.brokers.brokers import Broker

pytestmark = pytest.mark.java

WAIT_S = 60
PARTITIONS = 6
# The next checkpoint detects a failed disk at the latest.
QUICK = {
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
}


def two_directories(cluster: Cluster, node_id: int) -> dict[str, str]:
    return {"log.dirs": ",".join(str(cluster.folder / f"{node_id}-{letter}") for letter in "ab")}


def leaders(cluster: Cluster, topic: str, indexes: Collection[int]) -> set[int]:
    try:
        metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(
            topic, timeout=10
        )
    except KafkaException:
        return set()
    partitions = metadata.topics[topic].partitions
    return {partitions[index].leader for index in indexes} if partitions else set()


def in_sync(cluster: Cluster, topic: str) -> bool:
    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=10)
    partitions = metadata.topics[topic].partitions
    return len(partitions) == PARTITIONS and all(
        len(partition.isrs) == 2 for partition in partitions.values()
    )


def produce(cluster: Cluster, topic: str) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap, "message.timeout.ms": WAIT_S * 1000}
    producer = Producer({**settings, "topic.metadata.refresh.interval.ms": 500})
    errors: list[object] = []
    for index in range(PARTITIONS):
        producer.produce(
            topic, "value", partition=index, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(WAIT_S) == 0
    assert errors == [None] * PARTITIONS


def held(directory: Path, topic: str) -> set[int]:
    return {int(folder.name.rsplit("-", 1)[1]) for folder in directory.glob(f"{topic}-*")}


def spread(
    cluster: Cluster, topic: str, broker: Broker, node_id: int, other: int
) -> tuple[set[int], set[int]]:
    """Create a topic that a broker leads; return the partitions in its first and second directory.

    Both replicas of each partition are in sync and have a record.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new_topic = NewTopic(topic, PARTITIONS, replica_assignment=[[node_id, other]] * PARTITIONS)
    for future in admin.create_topics([new_topic], operation_timeout=30).values():
        future.result(WAIT_S)
    eventually(lambda: in_sync(cluster, topic), timeout_s=WAIT_S)
    until_led_by(cluster, topic, range(PARTITIONS), node_id)
    produce(cluster, topic)
    first, second = (held(directory, topic) for directory in broker.data_dirs)
    assert first
    assert second
    assert first | second == set(range(PARTITIONS))
    return first, second


def until_led_by(cluster: Cluster, topic: str, indexes: Collection[int], node_id: int) -> None:
    """Wait until all brokers report the leader: each learns of it separately."""
    eventually(lambda: leaders(cluster, topic, indexes) == {node_id}, timeout_s=WAIT_S)


def lose_a_directory(cluster: Cluster, failing: Broker, node_id: int, other: int) -> None:
    """Remove a directory of a leading broker; the other broker takes over its partitions."""
    topic = f"led-by-{node_id}"
    first_indexes, second_indexes = spread(cluster, topic, failing, node_id, other)
    # Renamed first: the broker would write to it while it is being deleted.
    shutil.rmtree(failing.data_dirs[1].rename(failing.data_dirs[1].with_name("gone")))
    produce(cluster, topic)
    until_led_by(cluster, topic, second_indexes, other)
    until_led_by(cluster, topic, first_indexes, node_id)
    produce(cluster, topic)


def test_lost_directory_moves_only_its_partitions_under_kafka_controller(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(settings=QUICK)
    cluster.java_broker(1)
    wirebroker = cluster.wirebroker(2, two_directories(cluster, 2))
    move_to_the_other_directory(cluster, wirebroker)
    lose_a_directory(cluster, wirebroker, 2, 1)


def move_to_the_other_directory(cluster: Cluster, broker: Broker) -> None:
    """Move a replica between two directories with Kafka's tool, and verify the move."""
    create(cluster, "moving", [[2]])
    send(cluster, "moving", values(0, 1000))
    source, target = broker.data_dirs
    if not (source / "moving-0").exists():
        source, target = target, source
    plan = {"topic": "moving", "partition": 0, "replicas": [2], "log_dirs": [str(target)]}
    file = cluster.folder / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [plan]}))
    run(broker.bootstrap, REASSIGN, "--execute", "--reassignment-json-file", str(file))
    send(cluster, "moving", values(1000, 1100))
    verify = ("--verify", "--reassignment-json-file", str(file))
    eventually(
        lambda: "moving-0-2 completed successfully" in run(broker.bootstrap, REASSIGN, *verify),
        timeout_s=WAIT_S,
    )
    assert (target / "moving-0").exists()
    assert not (source / "moving-0").exists()
    assert read(cluster, "moving", 1100) == values(0, 1100)


@pytest.mark.nightly  # with Kafka's controller above; disks/test_moved_directories.py with our own
def test_lost_directory_moves_only_its_partitions_under_own_controller(tmp_path: Path) -> None:
    cluster = own_cluster(tmp_path, QUICK)
    try:
        java = cluster.java_broker(1, two_directories(cluster, 1))
        wirebroker = cluster.wirebroker(2, two_directories(cluster, 2))
        lose_a_directory(cluster, java, 1, 2)
        lose_a_directory(cluster, wirebroker, 2, 1)
    finally:
        cluster.stop()
