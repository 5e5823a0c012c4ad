"""Requests to partition leaders: offsets, and deletion of records.

Partitions that move are retried until the client's timeout.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import PASSING, ClientError, check, check_all, with_done
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

_NO_OFFSET: Final = -1
# A leader may learn of a new topic later than other brokers.
_AGAIN: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class TopicPartition(NamedTuple):
    """One partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


async def partitions_of(
    client: KafkaClient, topics: Sequence[str], *, may_create: bool = False
) -> dict[TopicPartition, int]:
    """Return the leaders of all partitions of topics, in order.

    Raises:
        ClientError: A topic does not exist, or a partition has no leader.
    """
    return {
        TopicPartition(topic.name, partition.partition_index): partition.leader_id
        for topic in await find_topics(client, topics, may_create=may_create)
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    }


async def offsets_at(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Return each partition's first offset at or after a time, or its end.

    Times are ms since 1970, EARLIEST or LATEST, which is the last stable offset with
    `read_committed`.
    """
    offsets = await offsets_for_times(client, timestamps, read_committed=read_committed)
    later = [partition for partition in timestamps if partition not in offsets]
    if later:
        ends = dict.fromkeys(later, LATEST)
        offsets |= await offsets_at(client, ends, read_committed=read_committed)
    return offsets


async def offsets_for_times(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Return the same, without partitions that have no such record."""
    rows = {partition: {"timestamp": timestamp} for partition, timestamp in timestamps.items()}
    shared = {"replica_id": -1, "isolation_level": int(read_committed)}
    answers = await _request_leaders(client, ApiKey.LIST_OFFSETS, rows, shared)
    for partition, answer in answers.items():
        check(answer.error_code, f"LIST_OFFSETS for {partition} failed")
    offsets = {partition: int(answer.offset) for partition, answer in answers.items()}
    return {partition: offset for partition, offset in offsets.items() if offset != _NO_OFFSET}


async def delete_records(
    client: KafkaClient, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Delete records before offsets; return the new start offsets.

    Raises:
        ClientError: OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for a compacted topic. The message says
            in how many other partitions records were deleted.
    """
    rows = {partition: {"offset": offset} for partition, offset in before.items()}
    shared = {"timeout_ms": int(client.timeout_s * 1000)}
    answers = await _request_leaders(client, ApiKey.DELETE_RECORDS, rows, shared, is_change=True)
    check_all(
        (
            (answer.error_code, f"the records of {partition} cannot be deleted", None)
            for partition, answer in answers.items()
        ),
        "other partition",
        "trimmed",
    )
    return {partition: int(answer.low_watermark) for partition, answer in answers.items()}


async def clamped(
    client: KafkaClient, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the nearest valid offsets."""
    starts = await offsets_at(client, dict.fromkeys(positions, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(positions, LATEST))
    return {
        partition: min(max(position, starts[partition]), ends[partition])
        for partition, position in positions.items()
    }


async def _request_leaders(
    client: KafkaClient,
    key: ApiKey,
    rows: Mapping[TopicPartition, Mapping[str, Any]],
    shared: Mapping[str, Any],
    *,
    is_change: bool = False,
) -> dict[TopicPartition, Any]:
    """Request partitions from their leaders.

    A failed change of one leader does not stop the others; its error has the number of partitions
    that were changed.
    """
    answers: dict[TopicPartition, Any] = {}
    remaining = dict(rows)
    async for _ in client.tries():
        leaders = await partitions_of(client, sorted({partition.topic for partition in remaining}))
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for partition in remaining:
            by_leader[leaders[partition]].append(partition)
        requests = [
            client.request_of(leader, key, {**shared, "topics": _topics(partitions, rows)})
            for leader, partitions in by_leader.items()
        ]
        failures: list[ClientError] = []
        for answer in await (client.settled if is_change else client.together)(*requests):
            if isinstance(answer, ClientError):
                failures.append(answer)
            else:
                answers |= _answers(answer)
        if failures:
            count = sum(not answer.error_code for answer in answers.values())
            raise with_done(failures[0], count, "other partition", "trimmed")
        remaining = {
            partition: row
            for partition, row in remaining.items()
            if answers[partition].error_code in _AGAIN
        }
        if not remaining:
            break
    return {partition: answers[partition] for partition in rows}


def _topics(
    partitions: Iterable[TopicPartition], rows: Mapping[TopicPartition, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append({"partition_index": partition.partition, **rows[partition]})
    return [{"name": name, "partitions": partition_rows} for name, partition_rows in topics.items()]


def _answers(answer: Any) -> dict[TopicPartition, Any]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in answer.topics
        for partition in topic.partitions
    }
