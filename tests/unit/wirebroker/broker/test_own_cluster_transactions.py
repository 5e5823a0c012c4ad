"""A transaction in a cluster of three with different partition leaders."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers.own_cluster import FirstBroker, JoinedBroker

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
PATIENCE_S = 30.0


def read(servers: str) -> Counter[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("out", index, 0) for index in range(3)])
    messages = [message for _ in range(6) if (message := consumer.poll(PATIENCE_S)) is not None]
    assert len(messages) == 6
    assert all(message.error() is None for message in messages)
    assert consumer.poll(0.5) is None
    consumer.close()
    return Counter(message.value() or b"" for message in messages)


def test_a_transaction_spans_the_brokers_of_a_cluster(tmp_path: Path) -> None:
    first = FirstBroker(tmp_path / "1", SETTINGS)
    joined_brokers = [JoinedBroker(tmp_path / name, first, settings=SETTINGS) for name in "23"]
    try:
        for broker in (first, *joined_brokers):
            broker.start()
        servers = first.bootstrap
        admin = AdminClient({"bootstrap.servers": servers})
        topic = NewTopic("out", 3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        admin.create_topics([topic], operation_timeout=30)["out"].result(PATIENCE_S)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "id"})
        producer.init_transactions(PATIENCE_S)
        for number, is_commit in enumerate((True, False, True)):
            producer.begin_transaction()
            for index in range(3):
                producer.produce("out", b"%d of %d" % (number, index), partition=index)
            metadata = consumer.consumer_group_metadata()
            offsets = [TopicPartition("out", 0, number)]
            producer.send_offsets_to_transaction(offsets, metadata, PATIENCE_S)
            if is_commit:
                producer.commit_transaction(PATIENCE_S)
            else:
                assert producer.flush(PATIENCE_S) == 0
                producer.abort_transaction(PATIENCE_S)
        assert read(servers) == Counter(b"%d of %d" % (n, i) for n in (0, 2) for i in range(3))
        (committed,) = consumer.committed([TopicPartition("out", 0)], timeout=PATIENCE_S)
        assert committed.offset == 2
        consumer.close()
    finally:
        for broker in (*joined_brokers, first):
            broker.kill9()
