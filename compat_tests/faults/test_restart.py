"""A killed or stopped broker keeps all acknowledged records after its restart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from compat_tests.clients import confluent
from compat_tests.clients.all import LIBRARIES
from compat_tests.clients.message import WAIT_S, Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from compat_tests.conftest import StartBroker

CLIENT = LIBRARIES[0]


def test_acknowledged_records_survive_kill_9(start_broker: StartBroker, topic: str) -> None:
    broker = start_broker()
    topics.create(broker.bootstrap, topic, configs={"segment.bytes": "1048576"})
    producer = confluent.make_producer(
        broker.bootstrap, {"enable.idempotence": True, "batch.num.messages": 100}
    )
    acknowledged: dict[int, bytes] = {}
    killed = threading.Event()

    def on_delivery(error: Any, message: Any) -> None:
        if error is None:
            acknowledged[message.offset()] = message.value()

    number = 0
    while not killed.is_set():
        value = b"%d " % number * 100
        producer.produce(topic, value=value, partition=0, on_delivery=on_delivery)
        producer.poll(0)
        number += 1
        if number % 500 == 0:
            producer.poll(0.01)
        if len(acknowledged) > 5000:
            broker.kill9()
            killed.set()
    before = dict(acknowledged)
    broker.start()
    # The producer continues by itself: records in flight are retried, once and in order.
    assert producer.flush(WAIT_S) == 0
    assert sorted(acknowledged) == list(range(number))
    read = CLIENT.consume(broker.bootstrap, topic, number)
    assert {message.offset: message.value for message in read} == acknowledged
    assert all(acknowledged[offset] == value for offset, value in before.items())
    assert [message.value for message in read] == [b"%d " % n * 100 for n in range(number)]


def test_topics_configs_and_offsets_survive_kill_9_and_clean_stop(
    start_broker: StartBroker, topic: str
) -> None:
    broker = start_broker()
    topics.create(broker.bootstrap, topic, partitions=3, configs={"retention.ms": "3600000"})
    CLIENT.produce(broker.bootstrap, topic, [Message(b"%d" % n) for n in range(10)], codec="lz4")
    before = _describe(broker.bootstrap, topic)
    broker.kill9()
    broker.start()
    assert _describe(broker.bootstrap, topic) == before
    CLIENT.produce(broker.bootstrap, topic, [Message(b"10")])
    broker.restart()
    assert _describe(broker.bootstrap, topic) == before
    read = CLIENT.consume(broker.bootstrap, topic, 11)
    assert [message.value for message in read] == [b"%d" % n for n in range(11)]


def _describe(bootstrap: str, topic: str) -> tuple[int, dict[str, str]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    partitions = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(WAIT_S)
    return len(partitions), {name: entry.value for name, entry in configs.items()}


def test_leader_epoch_increases_at_each_start(start_broker: StartBroker, topic: str) -> None:
    broker = start_broker()
    topics.create(broker.bootstrap, topic)
    CLIENT.produce(broker.bootstrap, topic, [Message(b"of the first start")])
    broker.restart()
    CLIENT.produce(broker.bootstrap, topic, [Message(b"after a clean stop")])
    broker.kill9()
    broker.start()
    CLIENT.produce(broker.bootstrap, topic, [Message(b"after a kill")])
    consumer = confluent.make_consumer(broker.bootstrap)
    consumer.assign([TopicPartition(topic, 0, 0)])
    read = consumer.consume(3, WAIT_S)
    consumer.close()
    assert [message.leader_epoch() for message in read] == [0, 2, 4]
