"""Replicas on brokers of either kind, the same to the byte, whoever leads, dies and comes back."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = pytest.mark.java

WAIT_S = 60
# Followers ask soon again, and who is gone leaves the ISR soon.
QUICK = {
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}


class Load:
    """One idempotent producer with acks=all that never rests, into partition 0 of each topic."""

    def __init__(self, cluster: Cluster, topics: Sequence[str]) -> None:
        self.acknowledged: dict[str, set[str]] = {topic: set() for topic in topics}
        self.failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0

    @property
    def count(self) -> int:
        return sum(len(each) for each in self.acknowledged.values())

    def go_on(self, more: int = 200) -> None:
        """Wait until so many more are acknowledged."""
        wanted = self.count + more
        eventually(lambda: self.count >= wanted, timeout_s=WAIT_S)

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            for topic in self.acknowledged:
                value = f"{topic} {number}"
                self._producer.produce(
                    topic, value, partition=0, on_delivery=self._delivered(topic, value)
                )
            number += 1
            self._producer.poll(0)
            time.sleep(0.003)

    def _delivered(self, topic: str, value: str) -> Callable[[object, object], None]:
        def note(error: object, _message: object) -> None:
            if error is None:
                self.acknowledged[topic].add(value)
            else:
                self.failed.append(f"{value}: {error}")

        return note


def create(cluster: Cluster, assignment: Mapping[str, Sequence[int]]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = [
        NewTopic(topic, 1, replica_assignment=[list(replicas)])
        for topic, replicas in assignment.items()
    ]
    for future in admin.create_topics(topics, operation_timeout=30).values():
        future.result(WAIT_S)


def isrs(cluster: Cluster, topics: Sequence[str]) -> dict[str, set[int]]:
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=WAIT_S)
    return {topic: set(found.topics[topic].partitions[0].isrs) for topic in topics}


def all_in_sync(cluster: Cluster, topics: Sequence[str]) -> None:
    eventually(
        lambda: all(each == {1, 2, 3} for each in isrs(cluster, topics).values()),
        timeout_s=WAIT_S,
    )


def read(cluster: Cluster, topic: str) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "r", "enable.auto.commit": False}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    position = 0
    while position < end:
        for message in consumer.consume(1000, timeout=1.0):
            assert message.error() is None, message.error()
            found.append((message.value() or b"").decode())
            position = (message.offset() or 0) + 1
    consumer.close()
    return found


def stored(cluster: Cluster, node_id: int, topic: str) -> bytes:
    folder = cluster.brokers[node_id].data_dirs[0] / f"{topic}-0"
    return b"".join(each.read_bytes() for each in sorted(folder.glob("*.log")))


def are_equal(cluster: Cluster, topic: str) -> bool:
    """Tell whether all replicas hold the same bytes, and some."""
    first, second, third = (stored(cluster, each, topic) for each in (1, 2, 3))
    return first == second == third != b""


def check(cluster: Cluster, load: Load) -> None:
    """Nothing acknowledged is lost, nothing is there twice, replicas are the same."""
    assert not load.failed
    topics = list(load.acknowledged)
    all_in_sync(cluster, topics)
    for topic, acknowledged in load.acknowledged.items():
        found = read(cluster, topic)
        assert len(found) == len(set(found)), f"{topic} has some twice"
        assert acknowledged <= set(found), f"{topic} has lost some"
    for topic in topics:
        eventually(partial(are_equal, cluster, topic), timeout_s=WAIT_S)


def test_java_and_wirebroker_lead_and_follow_each_other(start_cluster: StartCluster) -> None:
    cluster = start_cluster(settings=QUICK)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    cluster.wirebroker(3)
    assignment = {"java": (1, 2, 3), "ours": (2, 1, 3), "other": (3, 2, 1)}
    create(cluster, assignment)
    with Load(cluster, list(assignment)) as load:
        load.go_on()
        cluster.brokers[2].kill9()
        load.go_on()
        cluster.brokers[2].start()
        all_in_sync(cluster, list(assignment))
        cluster.brokers[1].kill9()
        load.go_on()
        cluster.brokers[1].start()
        all_in_sync(cluster, list(assignment))
        cluster.brokers[3].restart()
        load.go_on()
    check(cluster, load)
