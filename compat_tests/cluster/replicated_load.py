"""A load on replicated topics, and checks of the replicas after it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.records.batches import records_in
from tests.support.tools.background import InBackground
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compat_tests.cluster.nodes import Cluster

WAIT_S = 60
# Followers retry soon, and missing ones leave the ISR soon.
QUICK = {
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}


class Load(InBackground):
    """An idempotent producer with acks=all that sends continuously to partition 0 of each topic."""

    def __init__(self, cluster: Cluster, topics: Sequence[str]) -> None:
        super().__init__()
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

    def _finish(self) -> None:
        assert self._producer.flush(WAIT_S) == 0

    @property
    def count(self) -> int:
        return sum(len(records) for records in self.acknowledged.values())

    def go_on(self, additional: int = 200) -> None:
        target_count = self.count + additional
        eventually(lambda: self.count >= target_count, timeout_s=WAIT_S)

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            for topic in self.acknowledged:
                self._send(topic, f"{topic} {number}")
            number += 1
            self._producer.poll(0)
            time.sleep(0.003)  # the pace of the load

    def _send(self, topic: str, value: str) -> None:
        """Send when the client's queue has room, unless the load has ended by then."""
        while not self._is_over.is_set():
            try:
                self._producer.produce(
                    topic, value, partition=0, on_delivery=self._delivered(topic, value)
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

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
    metadata = (
        AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=WAIT_S).topics
    )
    partitions = {topic: metadata[topic].partitions for topic in topics if topic in metadata}
    return {
        topic: set(partitions[topic][0].isrs) if partitions.get(topic) else set()
        for topic in topics
    }


def views(cluster: Cluster, topics: Sequence[str]) -> str:
    """Describe leaders and ISRs as each broker reports them, and the results of a new producer."""
    lines = []
    for node_id, broker in cluster.brokers.items():
        try:
            metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10)
        except KafkaException as error:
            lines.append(f"broker {node_id}: {error}")
            continue
        leaders_and_isrs = {
            topic: (partition.leader, partition.isrs)
            for topic in topics
            if topic in metadata.topics
            for partition in metadata.topics[topic].partitions.values()
        }
        lines.append(
            f"broker {node_id}: brokers {sorted(metadata.brokers)}, leader, ISR {leaders_and_isrs}"
        )
    lines.append(f"a new producer: {answers_to_new_producer(cluster, topics)}")
    return "\n".join(lines)


def answers_to_new_producer(cluster: Cluster, topics: Sequence[str]) -> dict[str, str]:
    """Write a record to each topic with a new client; return the results."""
    answers: dict[str, str] = {}
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 10_000}
    )
    for topic in topics:
        producer.produce(
            topic,
            "of a new producer",
            partition=0,
            on_delivery=lambda error, message: answers.update({str(message.topic()): str(error)}),
        )
    producer.flush(WAIT_S)
    return answers


def all_in_sync(cluster: Cluster, topics: Sequence[str]) -> None:
    eventually(
        lambda: all(isr == {1, 2, 3} for isr in isrs(cluster, topics).values()),
        timeout_s=WAIT_S,
    )


def read(cluster: Cluster, topic: str) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "r", "enable.auto.commit": False}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    position = 0
    while position < end:
        for message in consumer.consume(1000, timeout=1.0):
            assert message.error() is None, message.error()
            values.append((message.value() or b"").decode())
            position = (message.offset() or 0) + 1
    consumer.close()
    return values


def stored(cluster: Cluster, node_id: int, topic: str) -> bytes:
    folder = cluster.brokers[node_id].data_dirs[0] / f"{topic}-0"
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def are_equal(cluster: Cluster, topic: str) -> bool:
    """Return whether all replicas hold the same bytes, and at least some."""
    first, second, third = (stored(cluster, node_id, topic) for node_id in (1, 2, 3))
    return first == second == third != b""


def twice_in(records: bytes) -> list[tuple[int, bytes | None]]:
    """Return the duplicates within one epoch of their producer, with that epoch.

    If an ISR was too small for one batch but not for the next, both brokers refuse the next as out
    of sequence. librdkafka then starts a new epoch and sends all unacknowledged batches of any
    partition in it again. A broker that died may have appended them before; no broker detects such
    duplicates.
    """
    counts = Counter(
        (header.producer_epoch, record.value) for header, record in records_in(records)
    )
    return [epoch_and_value for epoch_and_value, count in counts.items() if count > 1]


def check(cluster: Cluster, load: Load) -> None:
    """Check that no acknowledged record is lost or duplicated, and replicas are equal."""
    assert not load.failed
    topics = list(load.acknowledged)
    all_in_sync(cluster, topics)
    for topic, acknowledged in load.acknowledged.items():
        assert acknowledged <= set(read(cluster, topic)), f"{topic} has lost some"
    for topic in topics:
        eventually(partial(are_equal, cluster, topic), timeout_s=WAIT_S)
        assert not twice_in(stored(cluster, 1, topic)), f"{topic} has some twice"


def verify(cluster: Cluster, topics: Sequence[str]) -> None:
    """Stop the brokers and check their logs with `wirebroker verify`."""
    for broker in cluster.brokers.values():
        broker.stop()
        command = [sys.executable, "-m", "wirebroker", "verify", "--json", str(broker.data_dirs[0])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        problems = [row for row in rows if row.get("severity") in {"error", "warning"}]
        assert not problems, problems
        assert rows[-1]["partition_count"] >= len(topics)
        assert done.returncode == 0, done.stderr
