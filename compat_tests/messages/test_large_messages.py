"""A message of 5 MB is accepted where the topic allows it, and refused elsewhere."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from aiokafka.errors import MessageSizeTooLargeError as AioTooLargeError
from confluent_kafka import KafkaError, KafkaException
from kafka.errors import MessageSizeTooLargeError

from compat_tests.clients import aio, confluent, kafka_python
from compat_tests.clients.message import WAIT_S, Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.brokers.brokers import Broker

    Produce = Callable[[Broker, str], None]

LARGE_BYTES = 5_000_000
REQUEST_BYTES = 8_000_000
# Random, so that no codec compresses it.
LARGE = Message(random.Random(5).randbytes(LARGE_BYTES), b"large")
SMALL = Message(b"small", b"small")


def produce_with_confluent(broker: Broker, topic: str) -> None:
    errors: list[KafkaError] = []
    producer = confluent.make_producer(broker.bootstrap, {"message.max.bytes": REQUEST_BYTES})
    for message in (SMALL, LARGE, SMALL):
        confluent.produce_one(producer, topic, message, errors)
        producer.flush(WAIT_S)
        if errors:
            raise KafkaException(errors[0])


def produce_with_kafka_python(broker: Broker, topic: str) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=broker.bootstrap, max_request_size=REQUEST_BYTES, acks="all"
    )
    try:
        for message in (SMALL, LARGE, SMALL):
            kafka_python.send(producer, topic, message).get(timeout=WAIT_S)
    finally:
        producer.close(timeout=5)


def produce_with_aiokafka(broker: Broker, topic: str) -> None:
    async def produce() -> None:
        producer = aio.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, max_request_size=REQUEST_BYTES, acks="all"
        )
        await producer.start()
        try:
            for message in (SMALL, LARGE, SMALL):
                await producer.send_and_wait(topic, message.value, key=message.key, partition=0)
        finally:
            await producer.stop()

    aio.asyncio.run(produce())


PRODUCERS = [produce_with_confluent, produce_with_kafka_python, produce_with_aiokafka]


@pytest.mark.parametrize("produce", PRODUCERS)
def test_five_megabyte_message_is_accepted_if_topic_allows_it(
    broker: Broker, topic: str, produce: Produce
) -> None:
    topics.create(broker.bootstrap, topic, configs={"max.message.bytes": str(REQUEST_BYTES)})
    produce(broker, topic)
    # It exceeds each client's limits per partition and per fetch, but a broker always sends the
    # first batch whole.
    for client in (confluent.Confluent(), kafka_python.KafkaPython(), aio.AioKafka()):
        read = client.consume(broker.bootstrap, topic, 3)
        assert [message.value for message in read] == [b"small", LARGE.value, b"small"], client.name


@pytest.mark.parametrize("produce", PRODUCERS)
def test_five_megabyte_message_is_rejected_by_default_topic(
    broker: Broker, topic: str, produce: Produce
) -> None:
    topics.create(broker.bootstrap, topic)
    with pytest.raises((KafkaException, MessageSizeTooLargeError, AioTooLargeError)) as refusal:
        produce(broker, topic)
    if produce is produce_with_confluent:
        assert refusal.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    read = confluent.Confluent().consume(broker.bootstrap, topic, 1)
    assert [message.value for message in read] == [b"small"]
