"""Three wirebrokers without a JVM: no record is lost or duplicated when a leader is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers.own_cluster import FirstBroker, JoinedBroker
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

ALL = {1, 2, 3}
OFFSETS = "__consumer_offsets"
# Each has another partition of __consumer_offsets, because the hashes of the names are consecutive.
GROUPS = [f"group-{number}" for number in range(6)]
PATIENCE_S = 60.0


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[int, Broker]]:
    """Three running brokers; 1 has the controller."""
    first = FirstBroker(tmp_path / "1")
    made: dict[int, Broker] = {1: first}
    try:
        first.start()
        for node_id in (2, 3):
            made[node_id] = JoinedBroker(tmp_path / str(node_id), first)
            made[node_id].start()
        yield made
    finally:
        for broker in made.values():
            broker.kill9()


def bootstrap(brokers: dict[int, Broker]) -> str:
    return ",".join(broker.bootstrap for broker in brokers.values())


class Topics:
    """Topics as described by any running broker."""

    def __init__(self, brokers: dict[int, Broker]) -> None:
        self.admin = AdminClient({"bootstrap.servers": bootstrap(brokers)})

    def create(self, topic: str, replicas: list[int]) -> None:
        new_topic = NewTopic(topic, 1, replica_assignment=[replicas])
        for future in self.admin.create_topics([new_topic], operation_timeout=30).values():
            future.result(PATIENCE_S)

    def leaders(self, topic: str) -> set[int]:
        return {partition.leader for partition in self._partitions(topic)}

    def are_in_sync(self, topic: str, brokers: set[int]) -> bool:
        return bool(partitions := self._partitions(topic)) and all(
            set(partition.isrs) == brokers for partition in partitions
        )

    def _partitions(self, topic: str) -> list[Any]:
        try:
            return list(self.admin.list_topics(topic, timeout=10).topics[topic].partitions.values())
        except KafkaException:
            return []


class Load:
    """An idempotent producer with acks=all, and its sent and acknowledged records."""

    def __init__(self, brokers: dict[int, Broker], topic: str) -> None:
        self.sent: list[str] = []
        self.acknowledged: list[str] = []
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap(brokers), "enable.idempotence": True}
        )

    def send(self, count: int) -> None:
        for _ in range(count):
            self.sent.append(f"record {len(self.sent)}")
            self._producer.produce(self._topic, self.sent[-1], on_delivery=self._delivered)

    def finish(self) -> None:
        assert self._producer.flush(PATIENCE_S) == 0
        assert self.acknowledged == self.sent

    def _delivered(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged.append(message.value().decode())


def commit(brokers: dict[int, Broker], group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap(brokers), "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(brokers: dict[int, Broker], group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap(brokers), "group.id": group})
    (topic_partition,) = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)
    consumer.close()
    return topic_partition.offset


def read(brokers: dict[int, Broker], topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap(brokers), "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while len(values) < count:
        messages = consumer.consume(count, timeout=PATIENCE_S)
        assert messages, f"only {len(values)} of {count}"
        values += [(message.value() or b"").decode() for message in messages]
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)
    assert end == count
    consumer.close()
    return values


def stored(broker: Broker, partition: str) -> bytes:
    folder = broker.data_dir / partition
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def test_killed_leader_is_replaced_and_rejoins(brokers: dict[int, Broker]) -> None:
    topics = Topics(brokers)
    topics.create("t", [2, 3, 1])
    eventually(
        lambda: topics.are_in_sync("t", ALL) and topics.leaders("t") == {2}, timeout_s=PATIENCE_S
    )
    load = Load(brokers, "t")
    load.send(300)
    load.finish()
    for number, group in enumerate(GROUPS):
        commit(brokers, group, "t", 100 + number)
    assert 2 in topics.leaders(OFFSETS)

    load.send(300)
    brokers[2].kill9()
    load.send(300)
    load.finish()
    assert topics.leaders("t") == {3}
    eventually(lambda: topics.are_in_sync("t", {1, 3}), timeout_s=PATIENCE_S)
    assert 2 not in topics.leaders(OFFSETS)
    committed_offsets = {group: committed(brokers, group, "t") for group in GROUPS}
    assert committed_offsets == {group: 100 + number for number, group in enumerate(GROUPS)}
    for number, group in enumerate(GROUPS):
        commit(brokers, group, "t", 200 + number)

    brokers[2].start()
    load.send(300)
    load.finish()
    eventually(
        lambda: topics.are_in_sync("t", ALL) and topics.are_in_sync(OFFSETS, ALL),
        timeout_s=PATIENCE_S,
    )
    # A clean stop transfers the leadership before it ends.
    brokers[3].stop()
    assert 3 not in topics.leaders("t") | topics.leaders(OFFSETS)
    load.send(300)
    load.finish()
    committed_offsets = {group: committed(brokers, group, "t") for group in GROUPS}
    assert committed_offsets == {group: 200 + number for number, group in enumerate(GROUPS)}
    brokers[3].start()
    eventually(
        lambda: topics.are_in_sync("t", ALL) and topics.are_in_sync(OFFSETS, ALL),
        timeout_s=PATIENCE_S,
    )
    assert read(brokers, "t", len(load.sent)) == load.sent

    for node_id in (3, 2, 1):
        brokers[node_id].stop()
    for partition in ("t-0", *(f"{OFFSETS}-{number}" for number in range(6))):
        first, second, third = (stored(brokers[node_id], partition) for node_id in sorted(ALL))
        assert first == second == third != b"", partition


def test_brokers_joining_at_the_same_time_get_different_ids(tmp_path: Path) -> None:
    first = FirstBroker(tmp_path / "1")
    joining = [JoinedBroker(tmp_path / name, first) for name in "abc"]
    try:
        first.start()
        with ThreadPoolExecutor() as threads:
            list(threads.map(JoinedBroker.start, joining))
        admin = AdminClient({"bootstrap.servers": first.bootstrap})
        broker_metadata = admin.list_topics(timeout=10).brokers
        assert sorted(broker_metadata) == [1, 2, 3, 4]
        by_port = {broker.port: broker.id for broker in broker_metadata.values()}
        for joined in joining:
            text = (joined.data_dir / "meta.properties").read_text()
            assert f"node.id={by_port[joined.port]}\n" in text
        joining[0].restart()
    finally:
        for broker in (*joining, first):
            broker.kill9()
