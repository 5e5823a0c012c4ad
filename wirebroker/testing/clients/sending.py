"""Producing of single records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.records.partitioning import partition_for
from wirebroker.client.records.producing import TopicWriter
from wirebroker.codecs.records.codec import Codec
from wirebroker.testing.clients.topic_record import TopicRecord

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient


class OutgoingRecord(NamedTuple):
    """A record to append."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Sender:
    """A producer; records without a key go to the partitions in turn."""

    def __init__(self) -> None:
        # Records without a key, by topic.
        self._sent: dict[str, int] = {}

    async def send(self, client: KafkaClient, parcel: OutgoingRecord) -> TopicRecord:
        """Append a record with acks=all, and return it."""
        topic, partition, key, value, headers, timestamp_ms = parcel
        writer = TopicWriter(client, topic, Codec.NONE)
        await writer.open()
        if partition is None and key is not None:
            partition = partition_for(key, writer.partition_count)
        elif partition is None:
            turn = self._sent.get(topic, 0)
            self._sent[topic] = turn + 1
            partition = turn % writer.partition_count
        await writer.write([(partition, (key, value, headers))], timestamp_ms=timestamp_ms)
        (stored,) = writer.stored
        return TopicRecord(
            topic=topic,
            partition=partition,
            offset=stored.first_offset,
            timestamp=timestamp_ms if stored.append_time_ms < 0 else stored.append_time_ms,
            key=key,
            value=value,
            headers=headers,
        )
