"""Messages through Kafka's Java clients: the console tools and ProducerPerformance."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import java
from compat_tests.clients.all import CLIENTS, LIBRARIES
from compat_tests.clients.message import CODECS, Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.java, pytest.mark.shows("produce, consume", "java")]

PRINT_ALL = [
    item
    for name in ("key", "value", "headers", "timestamp", "offset", "partition")
    for item in ("--formatter-property", f"print.{name}=true")
]


def console_lines(broker: Broker, topic: str, start: str, count: int) -> list[str]:
    """Read with the console consumer from an assigned partition, without a group."""
    position_options = ["--partition", "0", "--offset", start, "--max-messages", str(count)]
    printed = java.run(
        broker.bootstrap, java.CONSOLE_CONSUMER, "--topic", topic, *position_options, *PRINT_ALL
    )
    return [line for line in printed.splitlines() if line.startswith(("CreateTime", "LogAppend"))]


def test_console_consumer_reads_records_of_every_library_and_codec(
    broker: Broker, topic: str
) -> None:
    topics.create(broker.bootstrap, topic, configs=topics.KEPT)
    expected: list[str] = []
    for client in LIBRARIES:
        for codec in CODECS:
            text = f"{client.name} {codec} " + "x" * 200
            at_ms = 1_700_000_000_000 + len(expected)
            message = Message(text.encode(), b"k", (("h", b"1"),), timestamp_ms=at_ms)
            line = f"CreateTime:{at_ms}\tPartition:0\tOffset:{len(expected)}\th:1\tk\t{text}"
            client.produce(broker.bootstrap, topic, [message], codec=codec)
            expected.append(line)
    LIBRARIES[0].produce(broker.bootstrap, topic, [Message(None, b"gone", timestamp_ms=5)])
    expected.append(f"CreateTime:5\tPartition:0\tOffset:{len(expected)}\tNO_HEADERS\tgone\tnull")
    assert console_lines(broker, topic, "earliest", len(expected)) == expected
    assert console_lines(broker, topic, "7", 3) == expected[7:10]


@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_records_of_console_producer(
    broker: Broker, topic: str, codec: str
) -> None:
    topics.create(broker.bootstrap, topic)
    arguments = ["--topic", topic, "--compression-codec", codec]
    for name, value in (("parse.key", "true"), ("parse.headers", "true"), ("null.marker", "~")):
        arguments += ["--reader-property", f"{name}={value}"]
    lines = [f"number:{n}\tkey {n}\tvalue {n}" for n in range(50)] + ["number:50\tkey 50\t~"]
    java.run(broker.bootstrap, java.CONSOLE_PRODUCER, *arguments, text="\n".join(lines) + "\n")
    values = [b"value %d" % n for n in range(50)] + [None]
    for reader in CLIENTS:
        read = reader.consume(broker.bootstrap, topic, 51)
        assert [message.value for message in read] == values, reader.name
        assert read[9].key == b"key 9"
        assert read[9].headers == (("number", b"9"),)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_producer_performance_writes_all_its_records_once(
    broker: Broker, topic: str, codec: str
) -> None:
    topics.create(broker.bootstrap, topic, partitions=3)
    numbers = ["--num-records", "50000", "--record-size", "100", "--throughput", "-1"]
    properties = ["--command-property", f"compression.type={codec}", "acks=all"]
    printed = java.run(
        broker.bootstrap, java.PRODUCER_PERFORMANCE, "--topic", topic, *numbers, *properties
    )
    assert "50000 records sent" in printed
    printed = java.run(broker.bootstrap, java.OFFSETS, "--topic", topic, "--time", "latest")
    ends = re.findall(rf"{topic}:(\d):(\d+)", printed)
    assert len(ends) == 3
    assert sum(int(end) for _, end in ends) == 50000


def test_the_console_producer_creates_a_topic_by_writing_to_it(broker: Broker, topic: str) -> None:
    java.run(broker.bootstrap, java.CONSOLE_PRODUCER, "--topic", topic, text="first\n")
    (read,) = LIBRARIES[0].consume(broker.bootstrap, topic, 1)
    assert read.value == b"first"
