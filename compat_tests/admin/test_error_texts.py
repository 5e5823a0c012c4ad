"""Error messages that users search for: timestamps, partitions, reassignments, group configs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.support import topics
from tests.support.protocol.raw_client import BlockingClient
from tests.transcripts.batches import batch
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.layout import LOG_APPEND_TIME_FLAG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

INVALID_ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT
NO_SUCH_BROKER = (
    "The manual partition assignment includes broker {}, but no such broker is registered."
)
TWICE = "The manual partition assignment includes the broker 1 more than once."
NO_REPLICAS = "The manual partition assignment includes an empty replica list."
NO_DEFAULT_GROUP = "Default group resources are not allowed."
OUT_OF_RANGE = "{} must be in the range {} to {} inclusive."
NO_SEQUENCE = "partitions should be a consecutive 0-based integer sequence"


class Cluster(NamedTuple):
    """A broker, and a client that sends it any request."""

    bootstrap: str
    client: BlockingClient

    def create(self, *, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        topic = new_topic_name()
        topics.create(self.bootstrap, topic, partitions=partitions, configs=configs)
        return topic

    def refusal(self, fields: dict[str, Any]) -> tuple[int, str]:
        """Return the error code and message for a new topic with these fields."""
        topic = {"name": "refused", "num_partitions": 1, "replication_factor": 1, **fields}
        request = {"topics": [topic], "timeout_ms": 30_000, "validate_only": True}
        (result,) = self.client.ask(ApiKey.CREATE_TOPICS, 7, request).topics
        return result.error_code, result.error_message

    def produce(self, topic: str, records: bytes) -> Any:
        data = {"name": topic, "partition_data": [{"index": 0, "records": records}]}
        request = {"acks": -1, "timeout_ms": 30_000, "topic_data": [data]}
        return self.client.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0]


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    host, _, port = broker.bootstrap.rpartition(":")
    with contextlib.closing(BlockingClient((host, int(port)))) as client:
        yield Cluster(broker.bootstrap, client)


@pytest.mark.parametrize(
    ("wanted", "code", "text"),
    [
        ((0, []), INVALID_ASSIGNMENT, NO_REPLICAS),
        ((0, [1, 1]), INVALID_ASSIGNMENT, TWICE),
        ((0, [7]), INVALID_ASSIGNMENT, NO_SUCH_BROKER.format(7)),
        ((0, [-7]), INVALID_ASSIGNMENT, NO_SUCH_BROKER.format(-7)),
        ((9, [1]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition {}:9."),
        ((0, None), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
    ],
)
def test_reassignments(
    cluster: Cluster, wanted: tuple[int, list[int] | None], code: ErrorCode, text: str | None
) -> None:
    topic = cluster.create(partitions=3)
    partition = {"partition_index": wanted[0], "replicas": wanted[1]}
    request = {"timeout_ms": 30_000, "topics": [{"name": topic, "partitions": [partition]}]}
    response = cluster.client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    (result,) = response.responses[0].partitions
    assert (result.error_code, result.error_message) == (code, text and text.format(topic))


TOO_FEW = "The topic {} currently has 3 partition(s); {} would not be an increase."
OTHER_COUNT = (
    "Attempted to add {} additional partition(s), but only {} assignment(s) were specified."
)


@pytest.mark.parametrize(
    ("wanted", "code", "text"),
    [
        ((3, None), ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partition(s)."),
        ((1, None), ErrorCode.INVALID_PARTITIONS, TOO_FEW.format("{}", 1)),
        ((-22, None), ErrorCode.INVALID_PARTITIONS, TOO_FEW.format("{}", -22)),
        ((2, [[1]]), ErrorCode.INVALID_PARTITIONS, TOO_FEW.format("{}", 2)),
        ((5, []), INVALID_ASSIGNMENT, OTHER_COUNT.format(2, 0)),
        ((4, [[1], [1]]), INVALID_ASSIGNMENT, OTHER_COUNT.format(1, 2)),
        ((4, [[1, 1]]), INVALID_ASSIGNMENT, TWICE),
        ((4, [[]]), INVALID_ASSIGNMENT, NO_REPLICAS),
        ((4, [[9]]), INVALID_ASSIGNMENT, NO_SUCH_BROKER.format(9)),
    ],
)
def test_added_partitions(
    cluster: Cluster, wanted: tuple[int, list[list[int]] | None], code: ErrorCode, text: str
) -> None:
    topic = cluster.create(partitions=3)
    count, assignments = wanted
    replicas = (
        None if assignments is None else [{"broker_ids": broker_ids} for broker_ids in assignments]
    )
    request = {"topics": [{"name": topic, "count": count, "assignments": replicas}]}
    response = cluster.client.ask(ApiKey.CREATE_PARTITIONS, 3, {**request, "timeout_ms": 30_000})
    (result,) = response.results
    assert (result.error_code, result.error_message) == (code, text.format(topic))


def assigned(*partitions: tuple[int, list[int]], **fields: int) -> dict[str, Any]:
    replicas = [{"partition_index": index, "broker_ids": ids} for index, ids in partitions]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": replicas, **fields}


BAD_COUNT = "Number of partitions was set to an invalid non-positive value."
BAD_FACTOR = "Replication factor must be larger than 0, or -1 to use the default value."


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS, BAD_COUNT),
        ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS, BAD_COUNT),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR, BAD_FACTOR),
        ({"replication_factor": -2}, ErrorCode.INVALID_REPLICATION_FACTOR, BAD_FACTOR),
        (assigned((0, [1]), (2, [1])), INVALID_ASSIGNMENT, NO_SEQUENCE),
        (assigned((-1, [1])), INVALID_ASSIGNMENT, NO_SEQUENCE),
        (
            assigned((0, [1]), (0, [1])),
            INVALID_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (assigned((0, [1, 1])), INVALID_ASSIGNMENT, TWICE),
        (assigned((0, [])), INVALID_ASSIGNMENT, NO_REPLICAS),
        (assigned((0, [5])), INVALID_ASSIGNMENT, NO_SUCH_BROKER.format(5)),
        (
            assigned((0, [1]), num_partitions=2),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            assigned((0, [1]), replication_factor=2),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to"
            " -1.",
        ),
    ],
)
def test_partitions_of_a_new_topic(
    cluster: Cluster, fields: dict[str, Any], code: ErrorCode, text: str
) -> None:
    assert cluster.refusal(fields) == (code, text)


def test_a_replication_factor_above_the_number_of_brokers(cluster: Cluster) -> None:
    code, text = cluster.refusal({"replication_factor": 3})
    assert code == ErrorCode.INVALID_REPLICATION_FACTOR
    # Apache Kafka 4.4 also mentions cordoned directories, 4.3 does not.
    assert text.startswith(
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be"
        " reached because only 1 broker(s) are registered"
    )


SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("group", "configs", "code", "text"),
    [
        ("", {SESSION: "50000"}, ErrorCode.INVALID_REQUEST, NO_DEFAULT_GROUP),
        ("g", {"no.such": "1"}, ErrorCode.INVALID_CONFIG, "Unknown group config name: no.such"),
        ("g", {SESSION: "1"}, ErrorCode.INVALID_CONFIG, OUT_OF_RANGE.format(SESSION, 45000, 60000)),
        (
            "g",
            {HEARTBEAT: "1"},
            ErrorCode.INVALID_CONFIG,
            OUT_OF_RANGE.format(HEARTBEAT, 5000, 15000),
        ),
        ("g", {SESSION: "50000", HEARTBEAT: "5000"}, ErrorCode.NONE, None),
    ],
)
def test_group_configs(
    cluster: Cluster, group: str, configs: dict[str, str], code: ErrorCode, text: str | None
) -> None:
    entries = [
        {"name": name, "config_operation": 0, "value": value} for name, value in configs.items()
    ]
    resource = {"resource_type": 32, "resource_name": group, "configs": entries}
    request = {"resources": [resource], "validate_only": True}
    response = cluster.client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    (result,) = response.responses
    assert (result.error_code, result.error_message) == (code, text)


@pytest.mark.parametrize("timestamp_ms", [5, 4_000_000_000_000, -5])
def test_timestamps(cluster: Cluster, timestamp_ms: int) -> None:
    limit_ms = 86_400_000
    sides = ("before", "after")
    configs = {f"message.timestamp.{side}.max.ms": str(limit_ms) for side in sides}
    response = cluster.produce(
        cluster.create(configs=configs), batch("a", "b", timestamp_ms=timestamp_ms)
    )
    assert response.error_code == ErrorCode.INVALID_TIMESTAMP
    assert (
        response.error_message == "One or more records have been rejected due to invalid timestamp"
    )
    assert [error.batch_index for error in response.record_errors] == [0, 1]
    for offset, error in enumerate(response.record_errors):
        text = error.batch_index_error_message
        earliest, latest = map(int, text.partition("[")[2].rstrip("]").split(", "))
        assert latest - earliest == 2 * limit_ms
        assert text == (
            f"Timestamp {timestamp_ms + offset} of message with offset {offset} is out of range."
            f" The timestamp should be within [{earliest}, {latest}]"
        )


@pytest.mark.parametrize("count", [1, 3, 5])
def test_records_without_a_key_for_a_compacted_topic(cluster: Cluster, count: int) -> None:
    topic = cluster.create(configs={"cleanup.policy": "compact"})
    response = cluster.produce(topic, batch(*["a"] * count, key=None))
    assert response.error_code == ErrorCode.INVALID_RECORD
    reason = f"Compacted topic cannot accept message without key in topic partition {topic}-0"
    errors = [
        (error.batch_index, error.batch_index_error_message) for error in response.record_errors
    ]
    assert errors == [(index, reason) for index in range(count)]
    error_texts = ", ".join(
        f"RecordError(batchIndex={index}, message='{reason}')" for index in range(min(count, 3))
    )
    assert response.error_message == (
        f"One or more records have been rejected due to {count} record errors in total, and only"
        f" showing the first three errors at most: [{error_texts}]"
    )


def test_batch_with_log_append_time_flag_is_rejected(cluster: Cluster) -> None:
    topic = cluster.create(configs={"message.timestamp.type": "LogAppendTime"})
    response = cluster.produce(topic, batch("a", damage={"attributes": LOG_APPEND_TIME_FLAG}))
    assert response.error_code == ErrorCode.INVALID_TIMESTAMP
    (error,) = response.record_errors
    # Apache Kafka also shows the record, in Java's form.
    text = error.batch_index_error_message
    assert text.startswith("Invalid timestamp type in message")
    assert text.endswith("Producer should not set timestamp type to LogAppendTime.")
