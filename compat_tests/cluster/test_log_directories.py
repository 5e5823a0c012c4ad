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
    return {"log.dirs": ",".join(str(cluster.folder / f"{node_id}-{each}") for each in "ab")}


def leaders(cluster: Cluster, topic: str, indexes: Collection[int]) -> set[int]:
    try:
        found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=10)
    except KafkaException:
        return set()
    partitions = found.topics[topic].partitions
    return {partitions[each].leader for each in indexes} if partitions else set()


def in_sync(cluster: Cluster, topic: str) -> bool:
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=10)
    partitions = found.topics[topic].partitions
    return len(partitions) == PARTITIONS and all(
        len(each.isrs) == 2 for each in partitions.values()
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
    return {int(each.name.rsplit("-", 1)[1]) for each in directory.glob(f"{topic}-*")}


def spread(
    cluster: Cluster, topic: str, broker: Broker, node_id: int, other: int
) -> tuple[set[int], set[int]]:
    """Create a topic that a broker leads; return the partitions in its first and second directory.

    Both replicas of each partition are in sync and have a record.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wanted = NewTopic(topic, PARTITIONS, replica_assignment=[[node_id, other]] * PARTITIONS)
    for future in admin.create_topics([wanted], operation_timeout=30).values():
        future.result(WAIT_S)
    eventually(lambda: in_sync(cluster, topic), timeout_s=WAIT_S)
    until_led_by(cluster, topic, range(PARTITIONS), node_id)
    produce(cluster, topic)
    first, second = (held(each, topic) for each in broker.data_dirs)
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
    kept, lost = spread(cluster, topic, failing, node_id, other)
    # Renamed first: the broker would write to it while it is being deleted.
    shutil.rmtree(failing.data_dirs[1].rename(failing.data_dirs[1].with_name("gone")))
    produce(cluster, topic)
    until_led_by(cluster, topic, lost, other)
    until_led_by(cluster, topic, kept, node_id)
    produce(cluster, topic)


def test_under_kafkas_controller_only_what_lay_in_the_directory_moves(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(settings=QUICK)
    cluster.java_broker(1)
    ours = cluster.wirebroker(2, two_directories(cluster, 2))
    move_to_the_other_directory(cluster, ours)
    lose_a_directory(cluster, ours, 2, 1)


def move_to_the_other_directory(cluster: Cluster, broker: Broker) -> None:
    """Move a replica between two directories with Kafka's tool, and verify the move."""
    create(cluster, "moving", [[2]])
    send(cluster, "moving", values(0, 1000))
    before, after = broker.data_dirs
    if not (before / "moving-0").exists():
        before, after = after, before
    plan = {"topic": "moving", "partition": 0, "replicas": [2], "log_dirs": [str(after)]}
    file = cluster.folder / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [plan]}))
    run(broker.bootstrap, REASSIGN, "--execute", "--reassignment-json-file", str(file))
    send(cluster, "moving", values(1000, 1100))
    verify = ("--verify", "--reassignment-json-file", str(file))
    eventually(
        lambda: "moving-0-2 completed successfully" in run(broker.bootstrap, REASSIGN, *verify),
        timeout_s=WAIT_S,
    )
    assert (after / "moving-0").exists()
    assert not (before / "moving-0").exists()
    assert read(cluster, "moving", 1100) == values(0, 1100)


def test_under_our_controller_kafkas_brokers_lose_no_more_either(tmp_path: Path) -> None:
    cluster = own_cluster(tmp_path, QUICK)
    try:
        java = cluster.java_broker(1, two_directories(cluster, 1))
        ours = cluster.wirebroker(2, two_directories(cluster, 2))
        lose_a_directory(cluster, java, 1, 2)
        lose_a_directory(cluster, ours, 2, 1)
    finally:
        cluster.stop()
