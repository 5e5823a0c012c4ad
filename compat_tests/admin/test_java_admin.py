"""Topics, configs and offsets through Kafka's Java command-line tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import java
from compat_tests.clients.all import LIBRARIES
from compat_tests.clients.message import Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.java, pytest.mark.shows("admin", "java")]


def test_kafka_topics_creates_describes_grows_and_deletes_a_topic(
    broker: Broker, topic: str
) -> None:
    def kafka_topics(*arguments: str) -> str:
        return java.run(broker.bootstrap, java.TOPICS, *arguments)

    created = kafka_topics(
        *("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "1"),
        *("--config", "retention.ms=3600000"),
    )
    assert f"Created topic {topic}." in created
    described = kafka_topics("--describe", "--topic", topic)
    head = next(line for line in described.splitlines() if "TopicId" in line)
    assert re.search(r"TopicId: [\w-]{22}\tPartitionCount: 3\tReplicationFactor: 1", head)
    assert "retention.ms=3600000" in head
    partitions = re.findall(r"Partition: (\d)\tLeader: (\d)\tReplicas: (\d)\tIsr: (\d)", described)
    assert [row[0] for row in partitions] == ["0", "1", "2"]
    assert len({number for row in partitions for number in row[1:]}) == 1  # the one node
    kafka_topics("--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in kafka_topics("--describe", "--topic", topic)
    assert topic in kafka_topics("--list").splitlines()
    kafka_topics("--delete", "--topic", topic)
    assert topic not in kafka_topics("--list").splitlines()


@pytest.mark.parametrize(
    ("arguments", "exception", "words"),
    [
        (["--create", "--topic", "{topic}"], "TopicExistsException", "already exists"),
        (["--alter", "--topic", "{topic}", "--partitions", "1"], "InvalidPartitionsException", ""),
        (["--create", "--topic", "a b"], "InvalidTopicException", ""),
        (
            ["--create", "--topic", "{topic}2", "--replication-factor", "3"],
            "InvalidReplicationFactorException",
            "",
        ),
    ],
    ids=["exists", "fewer partitions", "bad name", "too many replicas"],
)
def test_kafka_topics_prints_broker_errors(
    broker: Broker, topic: str, arguments: list[str], exception: str, words: str
) -> None:
    topics.create(broker.bootstrap, topic, partitions=2)
    filled = [argument.format(topic=topic) for argument in arguments]
    status, printed = java.attempt(broker.bootstrap, java.TOPICS, *filled)
    assert status != 0
    assert exception in printed
    assert words in printed


def test_kafka_configs_sets_shows_and_removes_a_topics_configs(broker: Broker, topic: str) -> None:
    topics.create(broker.bootstrap, topic)

    def kafka_configs(*arguments: str) -> str:
        entity = ("--entity-type", "topics", "--entity-name", topic)
        return java.run(broker.bootstrap, java.CONFIGS, *arguments, *entity)

    add = "max.message.bytes=2000000,cleanup.policy=[compact,delete]"
    assert "Completed updating" in kafka_configs("--alter", "--add-config", add)
    described = kafka_configs("--describe")
    assert "max.message.bytes=2000000 sensitive=false" in described
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000000" in described
    assert "cleanup.policy=compact,delete" in described
    kafka_configs("--alter", "--delete-config", "max.message.bytes")
    described = kafka_configs("--describe")
    assert "max.message.bytes" not in described
    all_configs = kafka_configs("--describe", "--all")
    assert re.search(r"segment\.bytes=1073741824 sensitive=false synonyms=\{.*DEFAULT", all_configs)


def test_kafka_configs_describes_a_broker(broker: Broker) -> None:
    printed = java.run(
        broker.bootstrap,
        java.CONFIGS,
        *("--describe", "--all", "--entity-type", "brokers", "--entity-name", "1"),
    )
    for name in ("num.partitions", "log.retention.hours", "auto.create.topics.enable"):
        assert re.search(rf"^\s*{re.escape(name)}=", printed, re.MULTILINE), name


def test_kafka_get_offsets_finds_first_last_latest_and_by_time(broker: Broker, topic: str) -> None:
    topics.create(broker.bootstrap, topic, configs=topics.KEPT)
    times_ms = [1_700_000_000_000, 1_700_000_009_000, 1_700_000_005_000]
    messages = [Message(b"%d" % n, timestamp_ms=at_ms) for n, at_ms in enumerate(times_ms)]
    LIBRARIES[0].produce(broker.bootstrap, topic, messages)
    expected = {"earliest": 0, "latest": 3, "max-timestamp": 1, "1700000000001": 1}
    for time_argument, offset in expected.items():
        printed = java.run(
            broker.bootstrap, java.OFFSETS, "--topic", topic, "--time", time_argument
        )
        assert f"{topic}:0:{offset}" in printed.splitlines(), time_argument


def test_kafka_broker_api_versions_prints_advertised_versions(broker: Broker) -> None:
    printed = java.run(broker.bootstrap, java.API_VERSIONS)
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", printed)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", printed)
