"""Transactions of every capable stock client: readers see committed records, never aborted ones."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.support import topics
from compat_tests.transactions.drivers.aio import AioKafka
from compat_tests.transactions.drivers.confluent import ConfluentKafka
from compat_tests.transactions.drivers.driver import Driver, DriverFactory, FencedError
from compat_tests.transactions.drivers.java import Java
from compat_tests.transactions.drivers.kafka_python import KafkaPython

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

CLIENTS = [
    pytest.param(ConfluentKafka(), id="confluent-kafka"),
    pytest.param(AioKafka(), id="aiokafka"),
    pytest.param(KafkaPython(), id="kafka-python"),
    pytest.param(Java(), id="java", marks=pytest.mark.java),
]
each_client = pytest.mark.parametrize("client", CLIENTS)


@contextlib.contextmanager
def started(client: DriverFactory, broker: Broker, transactional_id: str) -> Iterator[Driver]:
    driver = client.start(broker.bootstrap, transactional_id)
    try:
        yield driver
    finally:
        driver.close()


def read_to_end(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    settings = {"isolation.level": isolation, "enable.partition.eof": True}
    consumer: Consumer = confluent.make_consumer(bootstrap, settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        while True:
            message = consumer.poll(WAIT_S)
            assert message, "neither a record nor the end of the partition"
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            return values
    finally:
        consumer.close()


def committed_offset(bootstrap: str, topic: str, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (topic_partition,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
        return topic_partition.offset
    finally:
        consumer.close()


@pytest.mark.shows("transactions")
@each_client
def test_only_committed_records_are_read(
    transaction_broker: Broker, topic: str, client: DriverFactory
) -> None:
    bootstrap = transaction_broker.bootstrap
    topics.create(bootstrap, topic)
    with started(client, transaction_broker, topic) as driver:
        driver.begin()
        driver.write(topic, [b"a", b"b"])
        assert read_to_end(bootstrap, topic, "read_uncommitted") == [b"a", b"b"]
        assert read_to_end(bootstrap, topic, "read_committed") == []
        driver.commit()
        driver.begin()
        driver.write(topic, [b"never"])
        driver.abort()
        driver.begin()
        driver.write(topic, [b"c"])
        driver.commit()
    assert client.read(bootstrap, topic, 3) == [b"a", b"b", b"c"]
    assert read_to_end(bootstrap, topic, "read_committed") == [b"a", b"b", b"c"]
    assert read_to_end(bootstrap, topic, "read_uncommitted") == [b"a", b"b", b"never", b"c"]


@pytest.mark.shows("transactions")
@each_client
def test_a_transaction_covers_several_topics(
    transaction_broker: Broker, topic: str, client: DriverFactory
) -> None:
    bootstrap = transaction_broker.bootstrap
    names = [topic, f"{topic}-other"]
    for name in names:
        topics.create(bootstrap, name)
    with started(client, transaction_broker, topic) as driver:
        for values, is_committed in ((b"12", True), (b"34", False), (b"56", True)):
            driver.begin()
            for name, value in zip(names, values, strict=True):
                driver.write(name, [b"%c" % value])
            if is_committed:
                driver.commit()
            else:
                driver.abort()
    assert client.read(bootstrap, names[0], 2) == [b"1", b"5"]
    assert client.read(bootstrap, names[1], 2) == [b"2", b"6"]


@pytest.mark.shows("transactions")
@each_client
def test_a_second_producer_of_the_same_id_fences_the_first(
    transaction_broker: Broker, topic: str, client: DriverFactory
) -> None:
    bootstrap = transaction_broker.bootstrap
    topics.create(bootstrap, topic)
    with started(client, transaction_broker, topic) as first:
        first.begin()
        first.write(topic, [b"of the first"])
        with started(client, transaction_broker, topic) as second:
            # Its start has aborted the first one's open transaction.
            with pytest.raises(FencedError):
                first.commit()
            second.begin()
            second.write(topic, [b"of the second"])
            second.commit()
    assert client.read(bootstrap, topic, 1) == [b"of the second"]
    assert read_to_end(bootstrap, topic, "read_committed") == [b"of the second"]


@pytest.mark.shows("transactions")
@each_client
def test_copied_records_and_offsets_are_committed_atomically(
    transaction_broker: Broker, topic: str, client: DriverFactory
) -> None:
    bootstrap = transaction_broker.bootstrap
    source, target, group = f"{topic}-in", f"{topic}-out", f"group-{topic}"
    for name in (source, target):
        topics.create(bootstrap, name)
    with started(client, transaction_broker, topic) as driver:
        driver.begin()
        driver.write(source, [b"never"])
        driver.abort()
        driver.begin()
        driver.write(source, [b"a", b"b", b"c", b"d"])
        driver.commit()  # offsets 2 to 5, after an aborted record and a marker

        driver.begin()
        driver.copy(source, target, group, 2)
        driver.abort()
        assert committed_offset(bootstrap, source, group) < 0

        driver.begin()
        driver.copy(source, target, group, 2)
        driver.commit()
        assert committed_offset(bootstrap, source, group) == 4

        driver.begin()
        driver.copy(source, target, group, 2)
        driver.commit()
        assert committed_offset(bootstrap, source, group) == 6
    assert client.read(bootstrap, target, 4) == [b"A", b"B", b"C", b"D"]
    assert read_to_end(bootstrap, target, "read_committed") == [b"A", b"B", b"C", b"D"]
    all_values = [b"A", b"B", b"A", b"B", b"C", b"D"]
    assert read_to_end(bootstrap, target, "read_uncommitted") == all_values
