"""Producers that lose their connection.

Idempotent ones store each message once, in order. Others may store a batch twice, but
max.in.flight.requests.per.connection=1 keeps the order.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import pytest
from aiokafka import AIOKafkaProducer

from compat_tests.clients import confluent, java, kafka_python
from compat_tests.clients.message import WAIT_S, Message
from compat_tests.support import topics
from compat_tests.support.cutting_proxy import CuttingProxy, When
from tests.support.brokers.brokers import Broker, make_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    class Produce(Protocol):
        def __call__(self, bootstrap: str, topic: str, *, is_idempotent: bool) -> None: ...


COUNT = 300
VALUES = [b"%d" % number for number in range(COUNT)]
# The first batch, two in a row (so that a retry is lost too), and a later one.
CUTS = {1, 4, 5, 9}


@pytest.fixture(scope="module")
def proxy() -> Iterator[CuttingProxy]:
    cutting_proxy = CuttingProxy()
    yield cutting_proxy
    cutting_proxy.close()


@pytest.fixture(scope="module")
def hidden_broker(
    broker_kind: str, proxy: CuttingProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    directory: Path = tmp_path_factory.mktemp("hidden-broker")
    settings = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
    with make_broker(broker_kind, directory, settings) as broker:
        proxy.target_port = broker.port
        yield broker


def produce_with_confluent(bootstrap: str, topic: str, *, is_idempotent: bool) -> None:
    errors: list[object] = []
    settings = {"linger.ms": 0, "batch.num.messages": 10, "retry.backoff.ms": 20}
    producer = confluent.make_producer(bootstrap, {**settings, **safety(is_idempotent)})
    for value in VALUES:
        confluent.produce_one(producer, topic, Message(value), errors)
    assert producer.flush(WAIT_S) == 0
    assert not errors


def produce_with_kafka_python(bootstrap: str, topic: str, *, is_idempotent: bool) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=is_idempotent,
        batch_size=200,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
    )
    try:
        futures = [kafka_python.send(producer, topic, Message(value)) for value in VALUES]
        for future in futures:
            future.get(timeout=WAIT_S)
    finally:
        producer.close(timeout=5)


def produce_with_aiokafka(bootstrap: str, topic: str, *, is_idempotent: bool) -> None:
    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=is_idempotent,
            max_batch_size=200,
            retry_backoff_ms=20,
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, value, partition=0) for value in VALUES]
            await asyncio.wait_for(asyncio.gather(*sent), WAIT_S)
        finally:
            await producer.stop()

    asyncio.run(produce())


def produce_with_java(bootstrap: str, topic: str, *, is_idempotent: bool) -> None:
    numbers = ["--num-records", str(COUNT), "--payload-monotonic", "--throughput", "-1"]
    settings = {"batch.size": 200, "retry.backoff.ms": 20, **safety(is_idempotent)}
    properties = [f"{name}={value}".lower() for name, value in settings.items()]
    printed = java.run(
        bootstrap,
        java.PRODUCER_PERFORMANCE,
        *("--topic", topic, *numbers, "--command-property", *properties),
    )
    assert f"{COUNT} records sent" in printed


def safety(is_idempotent: bool) -> dict[str, bool | int]:
    """Return the settings that keep the order."""
    if is_idempotent:
        return {"enable.idempotence": True}
    return {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1}


JAVA = pytest.param(produce_with_java, marks=pytest.mark.java, id="java")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "produce", [produce_with_confluent, produce_with_kafka_python, produce_with_aiokafka, JAVA]
)
def test_lost_connection_causes_no_gap_and_no_duplicate(
    hidden_broker: Broker, proxy: CuttingProxy, topic: str, produce: Produce, when: When
) -> None:
    topics.create(hidden_broker.bootstrap, topic)
    proxy.cut(when, CUTS)
    produce(proxy.address, topic, is_idempotent=True)
    check_once_and_in_order(proxy, topic)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("produce", [produce_with_confluent, JAVA])
def test_single_in_flight_request_keeps_order_without_idempotence(
    hidden_broker: Broker, proxy: CuttingProxy, topic: str, produce: Produce, when: When
) -> None:
    topics.create(hidden_broker.bootstrap, topic)
    proxy.cut(when, CUTS)
    produce(proxy.address, topic, is_idempotent=False)
    check_in_order(proxy, topic, is_lost_before=when == "before")


def check_in_order(proxy: CuttingProxy, topic: str, *, is_lost_before: bool) -> None:
    """Check that the numbers are in order, except for whole duplicate batches."""
    assert proxy.cut_count == len(CUTS)
    proxy.cut("before", set())
    stored = end_of(proxy, topic)
    read = confluent.Confluent().consume(proxy.address, topic, stored)
    numbers = [int(message.value or b"") for message in read]
    assert list(dict.fromkeys(numbers)) == list(range(COUNT))  # by first occurrence
    # by last occurrence
    assert list(dict.fromkeys(reversed(numbers))) == list(reversed(range(COUNT)))
    assert (stored == COUNT) == is_lost_before


def check_once_and_in_order(proxy: CuttingProxy, topic: str) -> None:
    assert proxy.cut_count == len(CUTS)
    proxy.cut("before", set())
    assert end_of(proxy, topic) == COUNT
    read = confluent.Confluent().consume(proxy.address, topic, COUNT)
    assert [message.value for message in read] == VALUES


def end_of(proxy: CuttingProxy, topic: str) -> int:
    consumer = kafka_python.make_consumer(proxy.address)
    try:
        partition = kafka_python.TopicPartition(topic, 0)
        return int(consumer.end_offsets([partition])[partition])
    finally:
        consumer.close()
