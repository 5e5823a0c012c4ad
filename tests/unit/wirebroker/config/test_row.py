"""Reading and showing values; Apache Kafka 4.3.1's LogConfig printed the table."""

from __future__ import annotations

import pytest

from wirebroker.config import ConfigError, validate_topic_config
from wirebroker.config.rows.row import ConfigRow, ConfigType
from wirebroker.config.rows.texts import text_of
from wirebroker.config.rows.topic import TOPIC_ROWS

KAFKA_SHOWS = [
    ("cleanup.policy", "", ""),
    ("cleanup.policy", " compact , delete ", "compact,delete"),
    ("cleanup.policy", "compact,compact", "compact"),
    ("retention.ms", "-1", "-1"),
    ("retention.ms", " +5 ", "5"),
    ("retention.ms", "9223372036854775807", "9223372036854775807"),
    ("retention.bytes", "-99", "-99"),
    ("segment.bytes", "1048576", "1048576"),
    ("internal.segment.bytes", "1", "1"),
    ("preallocate", "TRUE", "true"),
    ("preallocate", " true", "true"),
    ("min.cleanable.dirty.ratio", "1", "1.0"),
    ("min.cleanable.dirty.ratio", "1e-4", "1.0E-4"),
    ("min.cleanable.dirty.ratio", "0.5d", "0.5"),
    ("min.cleanable.dirty.ratio", ".5", "0.5"),
    ("compression.type", " gzip", "gzip"),
    ("compression.gzip.level", "-1", "-1"),
    ("compression.zstd.level", "-131072", "-131072"),
    ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
    ("leader.replication.throttled.replicas", "*", "*"),
    ("leader.replication.throttled.replicas", "0:1, 1:2", "0:1,1:2"),
    ("leader.replication.throttled.replicas", "", ""),
    ("leader.replication.throttled.replicas", "0:1,0:1", "0:1,0:1"),
]
KAFKA_REFUSES = [
    ("cleanup.policy", "Compact"),
    ("cleanup.policy", "none"),
    ("cleanup.policy", "delete,"),
    ("cleanup.policy", ","),
    ("retention.ms", "-2"),
    ("retention.ms", "5.0"),
    ("retention.ms", "1_0"),
    ("retention.ms", ""),
    ("retention.ms", "9223372036854775808"),
    ("retention.ms", "9" * 5000),
    ("segment.bytes", "1048575"),
    ("segment.bytes", "2147483648"),
    ("preallocate", "yes"),
    ("min.cleanable.dirty.ratio", "1.01"),
    ("min.cleanable.dirty.ratio", "abc"),
    ("compression.type", "GZIP"),
    ("compression.type", "none"),
    ("compression.gzip.level", "0"),
    ("compression.gzip.level", "10"),
    ("compression.lz4.level", "0"),
    ("compression.lz4.level", "18"),
    ("compression.zstd.level", "-131073"),
    ("compression.zstd.level", "23"),
    ("message.timestamp.type", "createtime"),
    ("leader.replication.throttled.replicas", "0:1:2"),
    ("leader.replication.throttled.replicas", "none"),
    ("min.insync.replicas", "0"),
    ("max.compaction.lag.ms", "0"),
    ("min.compaction.lag.ms", "-1"),
    ("segment.ms", "0"),
    ("segment.index.bytes", "3"),
    ("flush.messages", "0"),
    ("local.retention.ms", "-3"),
    ("delete.retention.ms", "-1"),
    ("max.message.bytes", "-1"),
    ("segment.jitter.ms", "-1"),
    ("unclean.leader.election.enable", "maybe"),
    ("message.downconversion.enable", "true"),
    ("no.such", "1"),
]


@pytest.mark.parametrize(("name", "text", "shown"), KAFKA_SHOWS)
def test_value_is_parsed_and_formatted_like_kafka(name, text, shown):
    validate_topic_config(name, text)
    assert text_of(TOPIC_ROWS[name].parse(text)) == shown


@pytest.mark.parametrize(("name", "text"), KAFKA_REFUSES)
def test_value_that_kafka_refuses_is_refused_in_one_sentence(name, text):
    with pytest.raises(ConfigError) as caught:
        validate_topic_config(name, text)
    message = str(caught.value)
    assert name in message
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1234567.5, "1234567.5"),
        (12345678.0, "1.2345678E7"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (-1e22, "-1.0E22"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.0, "0.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_formatted_like_java(value, shown):
    assert text_of(value) == shown


def test_every_default_is_valid():
    for row in TOPIC_ROWS.values():
        row.default_value()


def test_no_error_message_contains_a_password():
    row = ConfigRow(
        name="secret", type=ConfigType.PASSWORD, default=None, doc="", choices=("right",)
    )
    with pytest.raises(ConfigError, match="hidden") as caught:
        row.parse("hunter2")
    assert "hunter2" not in str(caught.value)
