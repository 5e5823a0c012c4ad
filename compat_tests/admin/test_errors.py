"""Errors for requests about nonexistent objects."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import OffsetOutOfRangeError as AioOutOfRangeError
from aiokafka.errors import UnknownTopicOrPartitionError as AioUnknownTopicError
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition as PythonPartition
from kafka.errors import KafkaTimeoutError, OffsetOutOfRangeError, UnknownTopicOrPartitionError

from compat_tests.clients import confluent, kafka_python, kcat
from compat_tests.clients.message import WAIT_S, Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker


def test_confluent_gets_unknown_topic_error(strict_broker: Broker, topic: str) -> None:
    errors: list[KafkaError] = []
    producer = confluent.make_producer(
        strict_broker.bootstrap,
        {"topic.metadata.propagation.max.ms": 500, "message.timeout.ms": 20000},
    )
    confluent.produce_one(producer, topic, Message(b"x"), errors)
    assert producer.flush(WAIT_S) == 0
    assert [error.code() for error in errors] == [KafkaError.UNKNOWN_TOPIC_OR_PART]
    admin = AdminClient({"bootstrap.servers": strict_broker.bootstrap})
    metadata: Any = admin.list_topics(topic, timeout=WAIT_S).topics[topic]
    assert metadata.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_kafka_python_gets_unknown_topic_error(strict_broker: Broker, topic: str) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=strict_broker.bootstrap, max_block_ms=1000
    )
    try:
        with pytest.raises((KafkaTimeoutError, UnknownTopicOrPartitionError)):
            kafka_python.send(producer, topic, Message(b"x")).get(timeout=WAIT_S)
    finally:
        producer.close(timeout=5)
    consumer = kafka_python.make_consumer(strict_broker.bootstrap)
    try:
        assert topic not in consumer.topics()
        assert not consumer.partitions_for_topic(topic)
    finally:
        consumer.close()


def test_aiokafka_gets_unknown_topic_error(strict_broker: Broker, topic: str) -> None:
    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=strict_broker.bootstrap, request_timeout_ms=1000
        )
        await producer.start()
        try:
            await producer.send_and_wait(topic, b"x")
        finally:
            await producer.stop()

    with pytest.raises(AioUnknownTopicError):
        asyncio.run(produce())


def test_kcat_gets_unknown_topic_error(strict_broker: Broker, topic: str) -> None:
    with pytest.raises(AssertionError, match="Unknown topic or partition"):
        kcat.run(strict_broker.bootstrap, "-C", "-t", topic, "-p", "0", "-e", "-o", "beginning")


def test_confluent_gets_error_for_offset_after_the_end(broker: Broker, topic: str) -> None:
    topics.create(broker.bootstrap, topic)
    confluent.Confluent().produce(broker.bootstrap, topic, [Message(b"only")])
    consumer = confluent.make_consumer(broker.bootstrap, {"auto.offset.reset": "error"})
    try:
        consumer.assign([TopicPartition(topic, 0, 1000)])
        with pytest.raises(KafkaException) as raised:
            confluent.read(consumer, 1)
        assert raised.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    finally:
        consumer.close()


@pytest.mark.parametrize(("reset", "expected"), [("earliest", b"old"), ("latest", b"new")])
def test_confluent_applies_its_offset_reset_policy(
    broker: Broker, topic: str, reset: str, expected: bytes
) -> None:
    topics.create(broker.bootstrap, topic)
    client = confluent.Confluent()
    client.produce(broker.bootstrap, topic, [Message(b"old")])
    consumer = confluent.make_consumer(broker.bootstrap, {"auto.offset.reset": reset})
    try:
        consumer.assign([TopicPartition(topic, 0, 1000)])
        deadline = time.monotonic() + WAIT_S
        polled: Any = None
        while polled is None and time.monotonic() < deadline:
            polled = consumer.poll(1.0)
            if polled is None and reset == "latest":
                client.produce(broker.bootstrap, topic, [Message(b"new")])
        assert polled is not None
        assert polled.value() == expected
    finally:
        consumer.close()


def test_kafka_python_gets_error_for_offset_after_the_end(broker: Broker, topic: str) -> None:
    topics.create(broker.bootstrap, topic)
    confluent.Confluent().produce(broker.bootstrap, topic, [Message(b"only")])
    consumer = kafka_python.make_consumer(broker.bootstrap)
    try:
        partition = PythonPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 1000)
        with pytest.raises(OffsetOutOfRangeError):
            kafka_python.read(consumer, 1)
    finally:
        consumer.close()


def test_aiokafka_gets_error_for_offset_after_the_end(broker: Broker, topic: str) -> None:
    topics.create(broker.bootstrap, topic)
    confluent.Confluent().produce(broker.bootstrap, topic, [Message(b"only")])

    async def consume() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none")
        await consumer.start()
        try:
            partition = AioPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 1000)
            async with asyncio.timeout(WAIT_S):
                await consumer.getone()
        finally:
            await consumer.stop()

    with pytest.raises(AioOutOfRangeError):
        asyncio.run(consume())


def test_offset_request_fails_after_topic_deletion(strict_broker: Broker, topic: str) -> None:
    topics.create(strict_broker.bootstrap, topic)
    confluent.Confluent().produce(strict_broker.bootstrap, topic, [Message(b"only")])
    consumer = confluent.make_consumer(strict_broker.bootstrap)
    try:
        partition = TopicPartition(topic, 0, 0)
        consumer.assign([partition])
        assert confluent.read(consumer, 1)
        topics.delete(strict_broker.bootstrap, topic)
        with pytest.raises(KafkaException) as raised:
            consumer.get_watermark_offsets(partition, timeout=WAIT_S)
        # librdkafka's own code if it has refreshed its metadata by then, else the broker's
        codes = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
        assert raised.value.args[0].code() in codes
    finally:
        consumer.close()


def test_producer_gets_error_after_topic_deletion(strict_broker: Broker, topic: str) -> None:
    topics.create(strict_broker.bootstrap, topic)
    settings = {"message.timeout.ms": 5000, "topic.metadata.propagation.max.ms": 500}
    producer = confluent.make_producer(strict_broker.bootstrap, settings)
    errors: list[KafkaError] = []
    confluent.produce_one(producer, topic, Message(b"before"), errors)
    assert producer.flush(WAIT_S) == 0
    assert not errors
    topics.delete(strict_broker.bootstrap, topic)
    confluent.produce_one(producer, topic, Message(b"after"), errors)
    assert producer.flush(WAIT_S) == 0
    # depends on whether librdkafka refreshes its metadata before the response arrives
    codes = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
    assert len(errors) == 1
    assert errors[0].code() in codes


def test_recreated_topic_starts_empty(broker: Broker, topic: str) -> None:
    client = confluent.Confluent()
    topics.create(broker.bootstrap, topic)
    client.produce(broker.bootstrap, topic, [Message(b"first life")])
    topics.delete(broker.bootstrap, topic)
    topics.create(broker.bootstrap, topic)
    client.produce(broker.bootstrap, topic, [Message(b"second life")])
    (read,) = client.consume(broker.bootstrap, topic, 1)
    assert (read.offset, read.value) == (0, b"second life")
