"""Open transactions that no coordinator will end.

A transaction hangs if it is open for too long, and its coordinator has no transaction of that
producer, or none that includes the partition.

Source: Kafka's TransactionsCommand.FindHangingTransactionsCommand (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.client.transactions.producer_states import producers_of, write_abort_marker
from wirebroker.client.transactions.transactions import describe_transaction, list_transactions
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.transactions.producer_states import PartitionProducer


async def hanging_producers(
    client: KafkaClient,
    *,
    topic: str | None,
    partition: int | None = None,
    broker_id: int | None = None,
    longer_than_ms: int,
) -> list[PartitionProducer]:
    """Return the producers of hanging transactions; None does not limit the search.

    Raises:
        ClientError: The topic or partition does not exist, or a broker refuses.
    """
    topic_partitions = await _topic_partitions(client, topic, partition, broker_id)
    now_ms = client.clock.now_ms()
    open_ones = [
        producer
        for producer in await producers_of(client, topic_partitions, broker_id=broker_id)
        if producer.start_offset is not None
        and now_ms - producer.last_timestamp_ms > longer_than_ms
    ]
    return await _hanging(client, open_ones)


async def producer_at(
    client: KafkaClient, partition: TopicPartition, start_offset: int
) -> PartitionProducer:
    """Return the producer whose open transaction starts at an offset.

    Raises:
        ClientError: There is none.
    """
    for producer in await producers_of(client, [partition]):
        if producer.start_offset == start_offset:
            return producer
    raise ClientError(f"no open transaction starts at offset {start_offset} of {partition}")


async def abort_at(client: KafkaClient, producer: PartitionProducer) -> None:
    """Abort the open transaction of a producer in its partition, without its coordinator."""
    # A transaction that hangs since its first record has no coordinator epoch.
    await write_abort_marker(
        client,
        producer.place,
        (producer.producer_id, producer.producer_epoch),
        max(0, producer.coordinator_epoch),
    )


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
