"""Partitions with details of newer brokers (DescribeTopicPartitions, KIP-966)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import UnservedError, check
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.kafka_client import KafkaClient

# Partitions per response, as in Kafka's client.
_MOST_IN_ONE: Final = 2000


class PartitionDetails(NamedTuple):
    """One partition; `leader` may be -1, the last two are None if unknown."""

    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    eligible: list[int] | None
    last_known_eligible: list[int] | None


class TopicDetails(NamedTuple):
    """One topic."""

    name: str
    topic_id: bytes
    partitions: list[PartitionDetails]


async def topic_details(client: KafkaClient, names: Sequence[str]) -> list[TopicDetails]:
    """Return the details of topics, in this order."""
    if not names:
        return []
    brokers = await client.broker_ids()
    topics: dict[str, TopicDetails] = {}
    cursor: dict[str, Any] | None = None
    try:
        while True:
            body = {
                "topics": [{"name": name} for name in sorted(names)],
                "response_partition_limit": _MOST_IN_ONE,
                "cursor": cursor,
            }
            answer = await client.request_of(brokers[0], ApiKey.DESCRIBE_TOPIC_PARTITIONS, body)
            for row in answer.topics:
                check(row.error_code, f"topic {row.name} cannot be described")
                details = topics.setdefault(row.name, TopicDetails(row.name, row.topic_id, []))
                details.partitions.extend(_details(partition) for partition in row.partitions)
            if answer.next_cursor is None:
                return [topics[name] for name in names]
            next_cursor = answer.next_cursor
            cursor = {
                "topic_name": next_cursor.topic_name,
                "partition_index": next_cursor.partition_index,
            }
    except UnservedError:
        return [
            TopicDetails(
                row.name,
                row.topic_id,
                sorted(_details(partition) for partition in row.partitions),
            )
            for row in await find_topics(client, names)
        ]


def _details(row: Any) -> PartitionDetails:
    return PartitionDetails(
        row.partition_index,
        row.leader_id,
        list(row.replica_nodes),
        list(row.isr_nodes),
        _listed(getattr(row, "eligible_leader_replicas", None)),
        _listed(getattr(row, "last_known_elr", None)),
    )


def _listed(numbers: Sequence[int] | None) -> list[int] | None:
    return None if numbers is None else list(numbers)
