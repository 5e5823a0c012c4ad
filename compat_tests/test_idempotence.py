"""Idempotent producers whose connection is lost: each message is stored once, and in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer

from compat_tests import topics
from compat_tests.brokers import Broker, make_broker
from compat_tests.clients import confluent, java, kafka_python
from compat_tests.clients.message import WAIT_S, Message
from compat_tests.cutting_proxy import CuttingProxy, When

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Produce = Callable[[str, str, list[bytes]], None]

COUNT = 300
# Once at the first batch, twice in a row (so that a retry is lost too), and once later.
CUTS = {1, 4, 5, 9}


@pytest.fixture(scope="module")
def proxy() -> Iterator[CuttingProxy]:
    one = CuttingProxy()
    yield one
    one.close()


@pytest.fixture(scope="module")
def hidden_broker(
    broker_kind: str, proxy: CuttingProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """Run a broker that sends its clients to the proxy."""
    directory: Path = tmp_path_factory.mktemp("hidden-broker")
    settings = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
    one = make_broker(broker_kind, directory, settings)
    one.start()
    proxy.target_port = one.port
    yield one
    one.stop()


def produce_with_confluent(bootstrap: str, topic: str, values: list[bytes]) -> None:
    errors: list[object] = []
    settings = {"enable.idempotence": True, "linger.ms": 0, "batch.num.messages": 10}
    producer = confluent.make_producer(bootstrap, {**settings, "retry.backoff.ms": 20})
    for value in values:
        confluent.produce_one(producer, topic, Message(value), errors)
    assert producer.flush(WAIT_S) == 0
    assert not errors


def produce_with_kafka_python(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        batch_size=200,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
    )
    try:
        futures = [kafka_python.send(producer, topic, Message(value)) for value in values]
        for future in futures:
            future.get(timeout=WAIT_S)
    finally:
        producer.close(timeout=5)


def produce_with_aiokafka(bootstrap: str, topic: str, values: list[bytes]) -> None:
    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            max_batch_size=200,
            retry_backoff_ms=20,
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, value, partition=0) for value in values]
            await asyncio.wait_for(asyncio.gather(*sent), WAIT_S)
        finally:
            await producer.stop()

    asyncio.run(produce())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "produce", [produce_with_confluent, produce_with_kafka_python, produce_with_aiokafka]
)
def test_a_lost_connection_makes_no_gap_and_no_duplicate(
    hidden_broker: Broker, proxy: CuttingProxy, topic: str, produce: Produce, when: When
) -> None:
    topics.create(hidden_broker.bootstrap, topic)
    proxy.cut(when, CUTS)
    produce(proxy.address, topic, [b"%d" % number for number in range(COUNT)])
    assert proxy.cut_count == len(CUTS)
    check_once_and_in_order(proxy, topic, COUNT)


@pytest.mark.java
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_connection_makes_javas_producer_write_no_gap_and_no_duplicate(
    hidden_broker: Broker, proxy: CuttingProxy, topic: str, when: When
) -> None:
    topics.create(hidden_broker.bootstrap, topic)
    proxy.cut(when, CUTS)
    numbers = ["--num-records", "2000", "--payload-monotonic", "--throughput", "-1"]
    properties = ["--command-property", "batch.size=200", "retry.backoff.ms=20"]
    printed = java.run(
        proxy.address, java.PRODUCER_PERFORMANCE, "--topic", topic, *numbers, *properties
    )
    assert "2000 records sent" in printed
    assert proxy.cut_count == len(CUTS)
    check_once_and_in_order(proxy, topic, 2000)


def check_once_and_in_order(proxy: CuttingProxy, topic: str, count: int) -> None:
    proxy.cut("before", set())
    consumer = kafka_python.make_consumer(proxy.address)
    try:
        partition = kafka_python.TopicPartition(topic, 0)
        assert consumer.end_offsets([partition]) == {partition: count}
    finally:
        consumer.close()
    read = confluent.Confluent().consume(proxy.address, topic, count)
    assert [one.value for one in read] == [b"%d" % number for number in range(count)]
