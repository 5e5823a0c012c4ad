"""Producers of partitions, and markers that end hanging transactions (KIP-664)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, check
from wirebroker.client.topics.leaders import TopicPartition, partitions_of
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.client.kafka_client import KafkaClient

# Partitions per request.
_BATCH: Final = 500


class PartitionProducer(NamedTuple):
    """A producer of a partition; -1 if unknown.

    Attributes:
        coordinator_epoch: That of the last marker.
        start_offset: Start of its open transaction; None for none.
    """

    place: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None


async def producers_of(
    client: KafkaClient, partitions: Sequence[TopicPartition], *, broker_id: int | None = None
) -> list[PartitionProducer]:
    """Return the active producers of partitions, as their leaders or one broker know them."""
    producers: list[PartitionProducer] = []
    for first in range(0, len(partitions), _BATCH):
        batch = partitions[first : first + _BATCH]
        for node, topics in (await _nodes(client, batch, broker_id)).items():
            body = {"topics": [{"name": n, "partition_indexes": p} for n, p in topics.items()]}
            answer = await client.request_of(node, ApiKey.DESCRIBE_PRODUCERS, body)
            for topic in answer.topics:
                for partition in topic.partitions:
                    topic_partition = TopicPartition(topic.name, partition.partition_index)
                    failure = f"the producers of {topic_partition} cannot be described"
                    check(partition.error_code, failure, partition.error_message)
                    producers += [
                        _state(topic_partition, producer) for producer in partition.active_producers
                    ]
    return producers


def _state(partition: TopicPartition, producer: Any) -> PartitionProducer:
    start = producer.current_txn_start_offset
    return PartitionProducer(
        partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        None if start < 0 else start,
    )


async def _nodes(
    client: KafkaClient, partitions: Iterable[TopicPartition], broker_id: int | None
) -> dict[int, dict[str, list[int]]]:
    """Return partitions by topic, by the node that gets the request."""
    requested = list(partitions)
    leaders = await partitions_of(client, sorted({partition.topic for partition in requested}))
    nodes: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for partition in requested:
        if partition not in leaders:
            raise ClientError(f"there is no partition {partition}")
        node = leaders[partition] if broker_id is None else broker_id
        nodes[node][partition.topic].append(partition.partition)
    return nodes


async def write_abort_marker(
    client: KafkaClient,
    partition: TopicPartition,
    producer: tuple[int, int],
    coordinator_epoch: int,
) -> None:
    """Abort a transaction in one partition that its coordinator does not know.

    `producer` has the producer's id and epoch.

    `coordinator_epoch` is the marker's.
    """
    producer_id, producer_epoch = producer
    body = {
        "markers": [
            {
                "producer_id": producer_id,
                "producer_epoch": producer_epoch,
                "transaction_result": False,
                "topics": [{"name": partition.topic, "partition_indexes": [partition.partition]}],
                "coordinator_epoch": coordinator_epoch,
            }
        ]
    }
    (node,) = await _nodes(client, [partition], None)
    answer = await client.request_of(node, ApiKey.WRITE_TXN_MARKERS, body)
    for marker in answer.markers:
        for topic in marker.topics:
            for result in topic.partitions:
                check(result.error_code, f"the transaction in {partition} cannot be aborted")
