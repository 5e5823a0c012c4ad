"""Start positions of reads: an offset, a time, or the end while messages arrive."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import TopicPartition
from kafka import TopicPartition as PythonPartition

from compat_tests.clients import confluent, kafka_python, kcat
from compat_tests.clients.all import CLIENTS, LIBRARIES
from compat_tests.clients.message import WAIT_S, Client, Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

FIRST_MS = 1_700_000_000_000
STEP_MS = 1000
COUNT = 500
# Two segments and many index entries to search.
SMALL_FILES = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}


@pytest.fixture(scope="module")
def filled(broker: Broker) -> str:
    """Return a topic with COUNT messages, one a second, in batches of several codecs."""
    name = f"positions-{broker.port}-{threading.get_ident()}"
    topics.create(broker.bootstrap, name, configs=SMALL_FILES | topics.KEPT)
    for codec, first in (("none", 0), ("zstd", COUNT // 2)):
        messages = [
            Message(b"value %03d " % n * 500, b"k%d" % n, timestamp_ms=FIRST_MS + STEP_MS * n)
            for n in range(first, first + COUNT // 2)
        ]
        for chunk in range(0, len(messages), 50):
            LIBRARIES[0].produce(broker.bootstrap, name, messages[chunk : chunk + 50], codec=codec)
    return name


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
@pytest.mark.parametrize("offset", [0, 1, 57, 250, 251, 499])
def test_reading_starts_at_requested_offset(
    broker: Broker, filled: str, client: Client, offset: int
) -> None:
    count = min(20, COUNT - offset)
    read = client.consume(broker.bootstrap, filled, count, start=offset)
    assert [message.offset for message in read] == list(range(offset, offset + count))
    assert read[0].value == b"value %03d " % offset * 500


TIMES = [
    (FIRST_MS - 1, 0),
    (FIRST_MS, 0),
    (FIRST_MS + 1, 1),
    (FIRST_MS + 57 * STEP_MS, 57),
    (FIRST_MS + 333 * STEP_MS - 1, 333),
    (FIRST_MS + (COUNT - 1) * STEP_MS, COUNT - 1),
    (FIRST_MS + COUNT * STEP_MS, None),
]


def test_confluent_finds_offset_by_timestamp(broker: Broker, filled: str) -> None:
    consumer = confluent.make_consumer(broker.bootstrap)
    try:
        for timestamp_ms, expected in TIMES:
            timestamps = [TopicPartition(filled, 0, timestamp_ms)]
            (result,) = consumer.offsets_for_times(timestamps, timeout=WAIT_S)
            # librdkafka returns "the end" (-1) if all messages are earlier
            assert result.offset == (-1 if expected is None else expected), timestamp_ms
        assert consumer.get_watermark_offsets(timestamps[0], timeout=WAIT_S) == (0, COUNT)
    finally:
        consumer.close()


def test_kafka_python_finds_offset_by_timestamp(broker: Broker, filled: str) -> None:
    partition = PythonPartition(filled, 0)
    consumer = kafka_python.make_consumer(broker.bootstrap)
    try:
        for timestamp_ms, expected in TIMES:
            result = consumer.offsets_for_times({partition: timestamp_ms})[partition]
            assert (result and result.offset) == expected, timestamp_ms
            if result:
                assert result.timestamp == FIRST_MS + STEP_MS * result.offset
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: COUNT}
    finally:
        consumer.close()


async def test_aiokafka_finds_offset_by_timestamp(broker: Broker, filled: str) -> None:
    partition = AioPartition(filled, 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        for timestamp_ms, expected in TIMES:
            result = (await consumer.offsets_for_times({partition: timestamp_ms}))[partition]
            assert (result and result.offset) == expected, timestamp_ms
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: COUNT}
    finally:
        await consumer.stop()


def test_kcat_reads_between_timestamps_and_queries_offset(broker: Broker, filled: str) -> None:
    query = f"{filled}:0:{FIRST_MS + 57 * STEP_MS}"
    assert kcat.run(broker.bootstrap, "-Q", "-t", query).split()[-1] == "57"
    between = [f"s@{FIRST_MS + 57 * STEP_MS}", "-o", f"e@{FIRST_MS + 60 * STEP_MS}"]
    printed = kcat.run(
        broker.bootstrap, "-C", "-t", filled, "-p", "0", "-o", *between, "-f", "%o ", "-q"
    )
    assert printed.split() == ["57", "58", "59"]


@pytest.fixture
def trickle(broker: Broker, topic: str) -> Iterator[threading.Event]:
    """Write ten old messages, and ten new ones, one by one, once the event is set."""
    topics.create(broker.bootstrap, topic)
    LIBRARIES[0].produce(broker.bootstrap, topic, [Message(b"old %d" % n) for n in range(10)])
    reader_waits = threading.Event()

    def write() -> None:
        assert reader_waits.wait(WAIT_S)
        for number in range(10):
            LIBRARIES[0].produce(broker.bootstrap, topic, [Message(b"new %d" % number)])

    writer = threading.Thread(target=write)
    writer.start()
    yield reader_waits
    reader_waits.set()
    writer.join(WAIT_S)


NEW = [b"new %d" % number for number in range(10)]


def test_confluent_receives_records_produced_while_it_polls(
    broker: Broker, topic: str, trickle: threading.Event
) -> None:
    consumer = confluent.make_consumer(broker.bootstrap)
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)
        consumer.assign([TopicPartition(topic, 0, end)])
        assert consumer.poll(0.2) is None
        trickle.set()
        assert [message.value for message in confluent.read(consumer, 10)] == NEW
    finally:
        consumer.close()


def test_kafka_python_receives_records_produced_while_it_polls(
    broker: Broker, topic: str, trickle: threading.Event
) -> None:
    consumer = kafka_python.make_consumer(broker.bootstrap)
    try:
        kafka_python.place(consumer, topic, "latest")
        assert not consumer.poll(timeout_ms=200)
        trickle.set()
        assert [message.value for message in kafka_python.read(consumer, 10)] == NEW
    finally:
        consumer.close()


async def test_aiokafka_receives_records_produced_while_it_polls(
    broker: Broker, topic: str, trickle: threading.Event
) -> None:
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        partition = AioPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_end(partition)
        assert await consumer.position(partition) == 10
        trickle.set()
        async with asyncio.timeout(WAIT_S):
            assert [(await consumer.getone()).value for _ in range(10)] == NEW
    finally:
        await consumer.stop()
