"""Moves of replicas between log directories of their brokers (KIP-113)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.client.cluster.brokers import described_log_dirs
from wirebroker.client.errors import check
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.client.kafka_client import KafkaClient


class PlacedReplica(NamedTuple):
    """A replica on a broker, sorted like in Kafka's tools."""

    broker_id: int
    place: TopicPartition

    def __str__(self) -> str:
        return f"{self.place}-{self.broker_id}"


class ReplicaDirectories(NamedTuple):
    """A replica's directory, and the one it is moving to, or None."""

    current: str | None
    future: str | None


async def directories_of(
    client: KafkaClient, replicas: Collection[PlacedReplica]
) -> dict[PlacedReplica, ReplicaDirectories]:
    """Return the log directories of replicas."""
    brokers = sorted({replica.broker_id for replica in replicas})
    directories = dict.fromkeys(replicas, ReplicaDirectories(None, None))
    for broker_id, results in (await described_log_dirs(client, brokers)).items():
        for result in results:
            for topic in result.topics:
                for log in topic.partitions:
                    partition = TopicPartition(topic.name, log.partition_index)
                    replica = PlacedReplica(broker_id, partition)
                    if replica in directories:
                        field = "future" if log.is_future_key else "current"
                        directories[replica] = directories[replica]._replace(
                            **{field: result.log_dir}
                        )
    return directories


async def move_directories(
    client: KafkaClient, targets: Mapping[PlacedReplica, str]
) -> list[PlacedReplica]:
    """Start moving replicas to other directories; return those that move.

    The others are not on their brokers yet.
    """
    started: list[PlacedReplica] = []
    for broker_id in sorted({replica.broker_id for replica in targets}):
        body = {"dirs": _directories(targets, broker_id)}
        answer = await client.request_of(broker_id, ApiKey.ALTER_REPLICA_LOG_DIRS, body)
        for topic in answer.results:
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.topic_name, partition.partition_index)
                replica = PlacedReplica(broker_id, topic_partition)
                if partition.error_code == ErrorCode.REPLICA_NOT_AVAILABLE:
                    continue
                check(partition.error_code, f"Failed to alter dir for {replica}")
                started.append(replica)
    return started


def _directories(targets: Mapping[PlacedReplica, str], broker_id: int) -> list[dict[str, Any]]:
    paths: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for replica, path in targets.items():
        if replica.broker_id == broker_id:
            paths[path][replica.place.topic].append(replica.place.partition)
    return [
        {"path": path, "topics": [{"name": name, "partitions": p} for name, p in topics.items()]}
        for path, topics in paths.items()
    ]
