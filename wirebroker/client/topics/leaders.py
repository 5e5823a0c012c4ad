"""Requests to partition leaders: offsets, and deletion of records.

Partitions that move are retried until the client's timeout.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import PASSING, check
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

# Special timestamps of ListOffsets.
LATEST: Final = -1
EARLIEST: Final = -2

_NO_OFFSET: Final = -1
# A leader may learn of a new topic later than the broker that returned metadata.
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
        TopicPartition(topic.name, each.partition_index): each.leader_id
        for topic in await find_topics(client, topics, may_create=may_create)
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    }


async def offsets_at(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Return each partition's first offset at or after a time, or its end.

    Args:
        client: The cluster.
        timestamps: In ms since 1970, or EARLIEST or LATEST.
        read_committed: Whether LATEST is the last stable offset.

    Raises:
        ClientError: A topic does not exist.
    """
    found = await offsets_found(client, timestamps, read_committed=read_committed)
    later = [place for place in timestamps if place not in found]
    if later:
        ends = dict.fromkeys(later, LATEST)
        found |= await offsets_at(client, ends, read_committed=read_committed)
    return found


async def offsets_found(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Return the same, without partitions that have no such record."""
    rows = {place: {"timestamp": timestamp} for place, timestamp in timestamps.items()}
    shared = {"replica_id": -1, "isolation_level": int(read_committed)}
    answers = await _ask_leaders(client, ApiKey.LIST_OFFSETS, rows, shared)
    found = {place: int(answer.offset) for place, answer in answers.items()}
    return {place: offset for place, offset in found.items() if offset != _NO_OFFSET}


async def delete_records(
    client: KafkaClient, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Delete records before an offset in each partition; return the new start offsets.

    Raises:
        ClientError: OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for a compacted topic.
    """
    rows = {place: {"offset": offset} for place, offset in before.items()}
    shared = {"timeout_ms": int(client.timeout_s * 1000)}
    answers = await _ask_leaders(client, ApiKey.DELETE_RECORDS, rows, shared)
    return {place: int(answer.low_watermark) for place, answer in answers.items()}


async def clamped(
    client: KafkaClient, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the nearest valid offset for each position."""
    starts = await offsets_at(client, dict.fromkeys(positions, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(positions, LATEST))
    return {place: min(max(at, starts[place]), ends[place]) for place, at in positions.items()}


async def _ask_leaders(
    client: KafkaClient,
    key: ApiKey,
    rows: Mapping[TopicPartition, Mapping[str, Any]],
    shared: Mapping[str, Any],
) -> dict[TopicPartition, Any]:
    answers: dict[TopicPartition, Any] = {}
    left = dict(rows)
    async for _ in client.tries():
        leaders = await partitions_of(client, sorted({place.topic for place in left}))
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for place in left:
            by_leader[leaders[place]].append(place)
        asked = [
            client.request_of(leader, key, {**shared, "topics": _topics(places, rows)})
            for leader, places in by_leader.items()
        ]
        for answer in await client.together(*asked):
            answers |= _answers(answer)
        left = {place: row for place, row in left.items() if answers[place].error_code in _AGAIN}
        if not left:
            break
    for place, answer in answers.items():
        check(answer.error_code, f"{key.name} of {place} is refused")
    return {place: answers[place] for place in rows}


def _topics(
    places: Iterable[TopicPartition], rows: Mapping[TopicPartition, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for place in places:
        topics[place.topic].append({"partition_index": place.partition, **rows[place]})
    return [{"name": name, "partitions": partitions} for name, partitions in topics.items()]


def _answers(answer: Any) -> dict[TopicPartition, Any]:
    return {
        TopicPartition(topic.name, each.partition_index): each
        for topic in answer.topics
        for each in topic.partitions
    }
