"""Open transactions that no coordinator will end, for kafka-transactions find-hanging.

A transaction hangs if it is open for longer than allowed, and its coordinator has no transaction of
that producer, or none that includes the partition.

Source: Kafka's TransactionsCommand.FindHangingTransactionsCommand (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.client.transactions.producer_states import PartitionProducer, producers_of
from wirebroker.client.transactions.transactions import describe_transaction, list_transactions
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient

HANGING_TITLES: Final = (
    *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset"),
    *("LastTimestamp", "Duration(min)"),
)
_MINUTE_MS: Final = 60_000


async def hanging_rows(
    client: KafkaClient,
    *,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    longer_than_ms: int,
) -> list[tuple[object, ...]]:
    """Return a row for each hanging transaction; None does not limit the search.

    Raises:
        ClientError: A topic does not exist, or the user is not authorized.
    """
    places = await _places(client, topic, partition, broker_id)
    now_ms = client.clock.now_ms()
    open_ones = [
        each
        for each in await producers_of(client, places, broker_id=broker_id)
        if each.start_offset is not None and now_ms - each.last_timestamp_ms > longer_than_ms
    ]
    return [
        (
            *(each.place.topic, each.place.partition, each.producer_id, each.producer_epoch),
            *(each.coordinator_epoch, each.start_offset, each.last_timestamp_ms),
            (now_ms - each.last_timestamp_ms) // _MINUTE_MS,
        )
        for each in await _hanging(client, open_ones)
    ]


async def _places(
    client: KafkaClient, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    topics = (
        (await client.metadata()).topics if topic is None else await find_topics(client, [topic])
    )
    return [
        TopicPartition(each.name, part.partition_index)
        for each in topics
        for part in sorted(each.partitions, key=lambda part: part.partition_index)
        if broker_id is None or broker_id in part.replica_nodes
    ]


async def _hanging(
    client: KafkaClient, open_ones: list[PartitionProducer]
) -> list[PartitionProducer]:
    if not open_ones:
        return []
    ids = sorted({each.producer_id for each in open_ones})
    names = {
        each.producer_id: each.transactional_id
        for each in await list_transactions(client, producer_ids=ids)
    }
    known = {producer_id: await _partitions_of(client, name) for producer_id, name in names.items()}
    return [each for each in open_ones if f"{each.place}" not in known.get(each.producer_id, ())]


async def _partitions_of(client: KafkaClient, transactional_id: str) -> list[str]:
    try:
        return (await describe_transaction(client, transactional_id)).partitions
    except ClientError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return []
