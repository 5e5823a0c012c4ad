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
        last_sequence: Sequence number of its last record.
        last_timestamp_ms: Time of its last record.
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
    client: KafkaClient, places: Sequence[TopicPartition], *, broker_id: int | None = None
) -> list[PartitionProducer]:
    """Return the active producers of partitions, as their leaders or one broker know them.

    Raises:
        ClientError: A partition does not exist.
    """
    found: list[PartitionProducer] = []
    for first in range(0, len(places), _BATCH):
        batch = places[first : first + _BATCH]
        for node, asked in (await _nodes(client, batch, broker_id)).items():
            body = {"topics": [{"name": n, "partition_indexes": p} for n, p in asked.items()]}
            answer = await client.request_of(node, ApiKey.DESCRIBE_PRODUCERS, body)
            for topic in answer.topics:
                for each in topic.partitions:
                    place = TopicPartition(topic.name, each.partition_index)
                    what = f"the producers of {place} cannot be described"
                    check(each.error_code, what, each.error_message)
                    found += [_state(place, producer) for producer in each.active_producers]
    return found


def _state(place: TopicPartition, producer: Any) -> PartitionProducer:
    start = producer.current_txn_start_offset
    return PartitionProducer(
        place,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        None if start < 0 else start,
    )


async def _nodes(
    client: KafkaClient, places: Iterable[TopicPartition], broker_id: int | None
) -> dict[int, dict[str, list[int]]]:
    """Return partitions by topic, by the node to send the request to."""
    wanted = list(places)
    leaders = await partitions_of(client, sorted({place.topic for place in wanted}))
    nodes: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place in wanted:
        if place not in leaders:
            raise ClientError(f"there is no partition {place}")
        node = leaders[place] if broker_id is None else broker_id
        nodes[node][place.topic].append(place.partition)
    return nodes


async def write_abort_marker(
    client: KafkaClient, place: TopicPartition, producer: tuple[int, int], coordinator_epoch: int
) -> None:
    """Abort a transaction in one partition that its coordinator does not know.

    Args:
        client: The cluster.
        place: The partition.
        producer: The producer's id and epoch.
        coordinator_epoch: The marker's epoch.
    """
    producer_id, producer_epoch = producer
    body = {
        "markers": [
            {
                "producer_id": producer_id,
                "producer_epoch": producer_epoch,
                "transaction_result": False,
                "topics": [{"name": place.topic, "partition_indexes": [place.partition]}],
                "coordinator_epoch": coordinator_epoch,
            }
        ]
    }
    (node,) = await _nodes(client, [place], None)
    answer = await client.request_of(node, ApiKey.WRITE_TXN_MARKERS, body)
    for marker in answer.markers:
        for topic in marker.topics:
            for each in topic.partitions:
                check(each.error_code, f"the transaction in {place} cannot be aborted")
