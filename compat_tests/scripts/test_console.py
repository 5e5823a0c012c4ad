"""Our console scripts and Kafka's on Apache Kafka, with bytes that transcripts cannot hold."""

from __future__ import annotations

import contextlib
import math
import random
import struct
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.scripts.kafka_scripts import KafkaScripts
from compat_tests.support.newer_groups import make_share_group
from compat_tests.support.raw_requests import Requests
from tests.support.brokers.brokers import HOST, make_broker
from tests.support.cli.script_transcripts import our_scripts
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker
    from tests.support.cli.script_transcripts import Answer

pytestmark = pytest.mark.java

CLASSES = "org.apache.kafka.common.serialization."
FORMATTERS = "org.apache.kafka.tools.consumer."
SHARE_GROUP_STATE = "__share_group_state"
DOUBLES = [0.0, -0.0, 1.0, 0.1, 1e-5, 0.001, 1e7, 9999999.5, 1 / 3, 1.5e300]
DOUBLES += [float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308]
VALUES = {
    "Float": [struct.pack(">f", value) for value in DOUBLES if not 1e38 < abs(value) < math.inf],
    "Double": [struct.pack(">d", value) for value in DOUBLES],
    "Boolean": [b"\0", b"\1"],
    "ByteBuffer": [b"", b"abc"],
    "Bytes": [bytes(range(256))],
    "String": [b"a\xffb", b"c\xed\xa0\x80d", b"\xf0\x90\x80", "é".encode()],
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    with make_broker("apache", tmp_path_factory.mktemp("console"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def theirs() -> Iterator[KafkaScripts]:
    with KafkaScripts() as scripts:
        yield scripts


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Any:
    return our_scripts(capfd)


def read(run: Any, broker: Broker, topic: str, count: int, *flags: str) -> Answer:
    """Run a console consumer for the topic's first `count` messages."""
    options = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", "0"]
    options += ["--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "30000"]
    result: Answer = run("kafka-console-consumer", [*options, *flags])
    return result


def count_of(broker: Broker, topic: str) -> int:
    """Return the number of messages in a topic of one partition that no transaction wrote to."""
    with contextlib.closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        partition = TopicPartition(topic, 0)
        return int(consumer.end_offsets([partition])[partition])


def produce(broker: Broker, topic: str, values: list[bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for value in values:
        producer.send(topic, value=value, key=value)
    producer.close()


@pytest.mark.parametrize("name", VALUES)
def test_console_consumer_prints_values_like_kafka(
    name: str, broker: Broker, theirs: KafkaScripts, ours: Any
) -> None:
    topic = f"values-{name}"
    produce(broker, topic, VALUES[name])
    flags = ["--value-deserializer", f"{CLASSES}{name}Deserializer"]
    for part in ("timestamp", "partition", "offset", "delivery", "epoch", "headers"):
        flags += ["--formatter-property", f"print.{part}=true"]
    flags += ["--formatter-property", "no.such.property=true"]
    expected = read(theirs.run, broker, topic, len(VALUES[name]), *flags)
    result = read(ours, broker, topic, len(VALUES[name]), *flags)
    assert result.status == expected.status == 0
    assert result.out == expected.out
    assert result.out.count("\n") == len(VALUES[name])


@pytest.mark.usefixtures("internal_topics")
@pytest.mark.parametrize(
    ("topic", "formatter"),
    [
        ("__consumer_offsets", "OffsetsMessageFormatter"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter"),
        ("__transaction_state", "TransactionLogMessageFormatter"),
        ("read", "NoOpMessageFormatter"),
        ("read", "LoggingMessageFormatter"),
    ],
)
def test_console_consumer_formatters_print_like_kafka(
    topic: str, formatter: str, broker: Broker, theirs: KafkaScripts, ours: Any
) -> None:
    flags = ["--formatter", f"{FORMATTERS}{formatter}"]
    count = count_of(broker, topic)
    expected = read(theirs.run, broker, topic, count, *flags)
    result = read(ours, broker, topic, count, *flags)
    assert result.status == expected.status == 0
    assert result.out == expected.out
    assert result.out.count('{"key":') >= (3 if topic.startswith("__") else 0)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    ("topic", "formatter"),
    [
        ("__consumer_offsets", "ShareGroupMessageFormatter"),
        (SHARE_GROUP_STATE, "group.share.ShareGroupStateMessageFormatter"),
    ],
)
def test_console_consumer_formatters_print_share_groups_like_kafka(
    topic: str, formatter: str, broker: Broker, theirs: KafkaScripts, ours: Any
) -> None:
    flags = ["--formatter", f"{FORMATTERS}{formatter}"]
    count = count_of(broker, topic)
    expected = read(theirs.run, broker, topic, count, *flags)
    result = read(ours, broker, topic, count, *flags)
    assert result.status == expected.status == 0
    assert result.out == expected.out
    assert result.out.count('{"key":') >= 4


@pytest.fixture(scope="module")
def shared(broker: Broker) -> None:
    with contextlib.closing(Requests((HOST, broker.port))) as requests:
        requests.create("t", 1)
        make_share_group(requests, broker.bootstrap)
    # The broker may write the last state after the consumer has ended.
    eventually(lambda: count_of(broker, SHARE_GROUP_STATE) >= 4)


@pytest.fixture(scope="module")
def internal_topics(broker: Broker, theirs: KafkaScripts) -> None:
    """Commit offsets of a group, change and delete them; commit a transaction."""
    produce(broker, "read", [b"a"])
    consumer = KafkaConsumer(
        "read",
        bootstrap_servers=broker.bootstrap,
        group_id="readers",
        auto_offset_reset="earliest",
        consumer_timeout_ms=5000,
    )
    next(consumer)
    consumer.commit()
    consumer.close()
    connection = ["--bootstrap-server", broker.bootstrap]
    reset_options = ["--reset-offsets", "--group", "readers", "--topic", "read", "--to-earliest"]
    assert (
        theirs.run("kafka-consumer-groups", [*connection, *reset_options, "--execute"]).status == 0
    )
    load = ["--num-records", "1", "--record-size", "1", "--throughput", "-1"]
    producer_options = [*connection, "--topic", "written", *load, "--transactional-id", "tx"]
    assert theirs.run("kafka-producer-perf-test", producer_options).status == 0
    deletion_options = ["--delete", "--group", "readers"]
    assert theirs.run("kafka-consumer-groups", [*connection, *deletion_options]).status == 0


def test_console_producer_reads_lines_like_kafka(
    broker: Broker, theirs: KafkaScripts, ours: Any
) -> None:
    rng = random.Random(0)
    letters = [b"a", b"\r", b"\n", b"\r\n", b"\xc3\xa9", b"\xff", b"\xed\xa0\x80", b"\xe2\x82"]
    letters += [b"\xf0\x90\x80", b"\xf0", b"\x80", b"\xed\xa0", b"\xf4\x90\x80\x80", b"\xc0"]
    text = b"".join(rng.choices(letters, k=3000)) + b"end\r"
    for topic, run in (("lines-theirs", theirs.run), ("lines-ours", ours)):
        words = ["--bootstrap-server", broker.bootstrap, "--topic", topic]
        assert run("kafka-console-producer", words, text).status == 0
    flags = ("--formatter-property", "print.offset=true")
    outputs = [
        read(ours, broker, topic, count_of(broker, topic), *flags).out
        for topic in ("lines-theirs", "lines-ours")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") > 500
