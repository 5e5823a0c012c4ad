"""Moves of replicas to other brokers (KIP-455)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.client.errors import check, check_all
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient


class Reassignment(NamedTuple):
    """A partition whose replicas are moving."""

    place: TopicPartition
    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def goal(self) -> list[int]:
        """The replicas after the move."""
        return [replica for replica in self.replicas if replica not in self.removing]

    @property
    def origin(self) -> list[int]:
        """The replicas before the move, to which a cancellation returns."""
        return [replica for replica in self.replicas if replica not in self.adding]


async def list_reassignments(client: KafkaClient) -> list[Reassignment]:
    """Return the reassignments in progress."""
    body = {"timeout_ms": int(client.timeout_s * 1000), "topics": None}
    answer = await client.request_of_controller(ApiKey.LIST_PARTITION_REASSIGNMENTS, body)
    check(answer.error_code, "reassignments cannot be listed", answer.error_message)
    return sorted(
        Reassignment(
            TopicPartition(topic.name, partition.partition_index),
            list(partition.replicas),
            list(partition.adding_replicas),
            list(partition.removing_replicas),
        )
        for topic in answer.topics
        for partition in topic.partitions
    )


async def move_replicas(
    client: KafkaClient, replicas: Mapping[TopicPartition, Sequence[int] | None]
) -> list[TopicPartition]:
    """Start moves; None cancels one. Return the partitions without a move to cancel.

    Raises:
        ClientError: A move is refused; others may have started.
    """
    results = await alter_reassignments(client, replicas)
    idle = [
        partition
        for partition, result in results.items()
        if result.error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    ]
    check_all(
        (
            (result.error_code, f"{partition} cannot be moved", result.error_message)
            for partition, result in results.items()
            if result.error_code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        ),
        "other move",
        "changed",
    )
    return idle


async def alter_reassignments(
    client: KafkaClient,
    replicas: Mapping[TopicPartition, Sequence[int] | None],
    *,
    keeps_factor: bool = False,
) -> dict[TopicPartition, Any]:
    """Start moves, or cancel them (None), and return the result of each partition.

    `keeps_factor` refuses changes of the replication factor (KIP-860).
    """
    topics: dict[str, list[dict[str, Any]]] = {}
    for partition, new_replicas in replicas.items():
        row = {
            "partition_index": partition.partition,
            "replicas": None if new_replicas is None else list(new_replicas),
        }
        topics.setdefault(partition.topic, []).append(row)
    body: dict[str, Any] = {
        "timeout_ms": int(client.timeout_s * 1000),
        "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
    }
    if keeps_factor:
        body["allow_replication_factor_change"] = False
    answer = await client.request_of_controller(ApiKey.ALTER_PARTITION_REASSIGNMENTS, body)
    check(answer.error_code, "replicas cannot be moved", answer.error_message)
    return {
        TopicPartition(topic.name, result.partition_index): result
        for topic in answer.responses
        for result in topic.partitions
    }


async def replicas_of(
    client: KafkaClient, topics: Iterable[str]
) -> dict[TopicPartition, list[int]]:
    """Return all replicas of topics by partition, the preferred leader first."""
    return {
        TopicPartition(topic.name, partition.partition_index): list(partition.replica_nodes)
        for topic in await find_topics(client, list(dict.fromkeys(topics)))
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    }


async def origins_of(
    client: KafkaClient, current: Mapping[TopicPartition, Sequence[int]]
) -> dict[TopicPartition, list[int]]:
    """Return current replicas without those that running moves add."""
    adding = {row.place: row.adding for row in await list_reassignments(client)}
    return {
        partition: [broker for broker in replicas if broker not in adding.get(partition, ())]
        for partition, replicas in current.items()
    }
