"""Open transactions that no coordinator will end, for kafka-transactions find-hanging.

A transaction hangs if it is open for too long, and its coordinator has no transaction of that
producer, or none that includes the partition.

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
    """Return a row for each hanging transaction; None does not limit the search."""
    topic_partitions = await _topic_partitions(client, topic, partition, broker_id)
    now_ms = client.clock.now_ms()
    open_ones = [
        producer
        for producer in await producers_of(client, topic_partitions, broker_id=broker_id)
        if producer.start_offset is not None
        and now_ms - producer.last_timestamp_ms > longer_than_ms
    ]
    return [
        (
            *(
                producer.place.topic,
                producer.place.partition,
                producer.producer_id,
                producer.producer_epoch,
            ),
            *(producer.coordinator_epoch, producer.start_offset, producer.last_timestamp_ms),
            (now_ms - producer.last_timestamp_ms) // _MINUTE_MS,
        )
        for producer in await _hanging(client, open_ones)
    ]


async def _topic_partitions(
    client: KafkaClient, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    topics = (
        (await client.metadata()).topics if topic is None else await find_topics(client, [topic])
    )
    return [
        TopicPartition(topic_metadata.name, part.partition_index)
        for topic_metadata in topics
        for part in sorted(topic_metadata.partitions, key=lambda part: part.partition_index)
        if broker_id is None or broker_id in part.replica_nodes
    ]


async def _hanging(
    client: KafkaClient, open_ones: list[PartitionProducer]
) -> list[PartitionProducer]:
    if not open_ones:
        return []
    ids = sorted({producer.producer_id for producer in open_ones})
    names = {
        transaction.producer_id: transaction.transactional_id
        for transaction in await list_transactions(client, producer_ids=ids)
    }
    transaction_partitions = {
        producer_id: await _partitions_of(client, name) for producer_id, name in names.items()
    }
    return [
        producer
        for producer in open_ones
        if f"{producer.place}" not in transaction_partitions.get(producer.producer_id, ())
    ]


async def _partitions_of(client: KafkaClient, transactional_id: str) -> list[str]:
    try:
        return (await describe_transaction(client, transactional_id)).partitions
    except ClientError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return []
