"""Apache Kafka's brokers with a wirebroker controller: they join, fail over, and outlive it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clients import java
from compat_tests.cluster.own_controller import OwnController, own_cluster
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.cluster.nodes import Cluster

pytestmark = pytest.mark.java

QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
PATIENCE_S = 60.0


def admin_of(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def leader_of(admin: AdminClient, topic: str) -> int:
    try:
        metadata = admin.list_topics(timeout=10).topics.get(topic)
    except KafkaException:
        return -1
    return -1 if metadata is None or not metadata.partitions else int(metadata.partitions[0].leader)


def in_sync(admin: AdminClient, topic: str) -> set[int]:
    try:
        return set(admin.list_topics(timeout=10).topics[topic].partitions[0].isrs)
    except (KafkaException, KeyError):
        return set()


def replicas_of(admin: AdminClient, topic: str) -> list[int]:
    return list(admin.list_topics(timeout=10).topics[topic].partitions[0].replicas)


def move(cluster: Cluster, folder: Path, topic: str, replicas: list[int]) -> None:
    plan = folder / "plan.json"
    partition = {"topic": topic, "partition": 0, "replicas": replicas}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    done = java.run(cluster.bootstrap, REASSIGN, "--reassignment-json-file", str(plan), "--execute")
    assert "Successfully started partition reassignment" in done


def create(admin: AdminClient, *topics: NewTopic) -> None:
    for future in admin.create_topics(list(topics), operation_timeout=30).values():
        future.result()


def producer_of(cluster: Cluster) -> Producer:
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": int(PATIENCE_S * 1000),
        }
    )


def produce(producer: Producer, topic: str, values: list[str]) -> None:
    errors: list[Any] = []
    for value in values:
        producer.produce(
            topic,
            value=value,
            partition=0,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert not errors


def consume(cluster: Cluster, topic: str, count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"reads-{topic}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    values: list[str] = []
    while len(values) < count:
        messages = consumer.consume(count, timeout=PATIENCE_S)
        assert messages, f"only {len(values)} of {count}"
        values += [
            (message.value() or b"").decode() for message in messages if message.error() is None
        ]
    consumer.close()
    return values


def test_java_brokers_work_without_controller_and_fail_over(tmp_path: Path) -> None:
    cluster = own_cluster(tmp_path)
    try:
        cluster.java_broker(1)
        cluster.java_broker(2)
        admin, producer = admin_of(cluster), producer_of(cluster)
        create(admin, NewTopic("t", 1, replica_assignment=[[1, 2]]))
        eventually(lambda: in_sync(admin, "t") == {1, 2}, timeout_s=PATIENCE_S)
        produce(producer, "t", [f"a{number}" for number in range(100)])

        create(admin, NewTopic("moving", 1, replica_assignment=[[1]]))
        produce(producer, "moving", [f"m{number}" for number in range(100)])
        move(cluster, tmp_path, "moving", [2])
        eventually(lambda: replicas_of(admin, "moving") == [2], timeout_s=PATIENCE_S)

        controller = cluster.controllers[101]
        controller.kill9()
        produce(producer, "t", [f"b{number}" for number in range(100)])
        controller.start()
        create(admin, NewTopic("later", 1, replica_assignment=[[2, 1]]))

        cluster.brokers[1].kill9()
        eventually(lambda: leader_of(admin, "t") == 2, timeout_s=PATIENCE_S)
        assert in_sync(admin, "t") == {2}
        produce(producer, "t", [f"c{number}" for number in range(100)])
        cluster.brokers[1].start()
        eventually(lambda: in_sync(admin, "t") == {1, 2}, timeout_s=PATIENCE_S)
        # A clean stop transfers the leadership first.
        cluster.brokers[2].stop()
        assert leader_of(admin, "t") == 1
        cluster.brokers[2].start()
        assert consume(cluster, "moving", 100) == [f"m{number}" for number in range(100)]
        values = consume(cluster, "t", 300)
        assert values == [f"{letter}{number}" for letter in "abc" for number in range(100)]
    finally:
        cluster.stop()


@pytest.mark.nightly  # broker/test_own_cluster.py adds wirebrokers to a node with data
def test_node_with_data_becomes_first_of_cluster_and_keeps_topics(tmp_path: Path) -> None:
    cluster = own_cluster(tmp_path, has_broker=True)
    try:
        node = cluster.brokers[101]
        assert isinstance(node, OwnController)
        admin = admin_of(cluster)
        create(admin, NewTopic("old", 2))
        producer = producer_of(cluster)
        produce(producer, "old", ["kept"])
        node.restart()
        broker = cluster.java_broker(1)
        create(admin, NewTopic("theirs", 1, replica_assignment=[[1]]))
        produce(producer_of(cluster), "theirs", ["new"])
        assert consume(cluster, "theirs", 1) == ["new"]
        assert consume(cluster, "old", 1) == ["kept"]

        described = java.run(broker.bootstrap, java.TOPICS, "--describe", "--topic", "theirs")
        assert "Leader: 1\tReplicas: 1\tIsr: 1" in described
        replicas = java.run(broker.bootstrap, QUORUM, "describe", "--replication")
        assert re.search(r"^101\s+\S+\s+\d+\s+0\s+\d+\s+\d+\s+Leader", replicas, re.MULTILINE)
        assert re.search(r"^1\s+\S+\s+\d+\s+\d+\s+\d+\s+\d+\s+Observer", replicas, re.MULTILINE)
        status = java.run(node.bootstrap, QUORUM, "describe", "--status")
        assert "LeaderId:               101" in status
    finally:
        cluster.stop()
