"""Reading of a topic's records, and of a group's progress."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import committed_of
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import TopicPartition, offsets_at, partitions_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.testing.clients.topic_record import TopicRecord

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.record import Record

_LOOK_AGAIN_S: Final = 0.01
_CONSUMED_PAUSE_S: Final = 0.02


async def read_all(client: KafkaClient, topic: str, *, read_committed: bool) -> list[TopicRecord]:
    """Return a topic's records by partition and offset.

    Raises:
        ClientError: The topic does not exist or cannot be read.
    """
    reading = TopicReading(client, topic, read_committed=read_committed)
    await reading.read_all()
    return reading.in_order()


async def read_until(
    client: KafkaClient, topic: str, timeout_s: float, *, count: int, read_committed: bool
) -> list[TopicRecord]:
    """Wait for `count` records; return all.

    Raises:
        TimeoutError: There are fewer.
    """
    # A separate connection: the wait must not delay other responses.
    async with client.apart() as own:
        reading = TopicReading(own, topic, read_committed=read_committed)
        await reading.read_until(count, timeout_s)
    there = len(reading.records)
    if there < count:
        raise TimeoutError(
            f"{topic} has {there} of {count} records after {timeout_s:g} s"
            if reading.exists
            else f"there is no topic {topic} after {timeout_s:g} s"
        )
    return reading.in_order()


class TopicReading:
    """A reader of all partitions of a topic."""

    def __init__(self, client: KafkaClient, topic: str, *, read_committed: bool) -> None:
        self.records: list[TopicRecord] = []
        self.exists = False
        self._client = client
        self._topic = topic
        self._read_committed = read_committed
        self._max_records: int | None = None

    def in_order(self) -> list[TopicRecord]:
        """Return the records by partition and offset."""
        return sorted(self.records, key=lambda record: (record.partition, record.offset))

    async def read_all(self) -> PartitionsReader:
        """Read the stored records."""
        partitions = list(await partitions_of(self._client, [self._topic]))
        self.exists = True
        starts = await offsets_at(self._client, dict.fromkeys(partitions, EARLIEST))
        ends = await offsets_at(
            self._client, dict.fromkeys(partitions, LATEST), read_committed=self._read_committed
        )
        reader = PartitionsReader(
            self._client, starts, self._take, until=ends, read_committed=self._read_committed
        )
        await reader.run()
        return reader

    async def read_until(self, count: int, timeout_s: float) -> None:
        """Read until there are `count` records or a timeout."""
        monotonic = self._client.clock.monotonic
        end = monotonic() + timeout_s
        while True:
            try:
                reader = await self.read_all()
                break
            except ClientError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
            if monotonic() >= end:
                return
            await pause(_LOOK_AGAIN_S)
        if len(self.records) < count:
            self._max_records = count
            reader = PartitionsReader(
                self._client, reader.positions, self._take, read_committed=self._read_committed
            )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, end - monotonic())):
                    await reader.run()

    def _take(self, partition: TopicPartition, records: list[Record]) -> bool:
        self.records += [
            TopicRecord(
                topic=partition.topic,
                partition=partition.partition,
                offset=record.offset,
                timestamp=record.timestamp,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
            )
            for record in records
        ]
        return self._max_records is None or len(self.records) < self._max_records


async def consumed_until(
    client: KafkaClient, topic: str, group: str, timeout_s: float, *, read_committed: bool
) -> list[str]:
    """Wait until a group has committed all records; return lines about missing ones.

    Transaction markers do not count: clients may commit them or not.
    """
    end = client.clock.monotonic() + timeout_s
    while True:
        records = await read_all(client, topic, read_committed=read_committed)
        committed = await committed_of(client, group)
        missing: list[str] = []
        for index in sorted({record.partition for record in records}):
            offsets = [record.offset for record in records if record.partition == index]
            committed_offset = committed.get(TopicPartition(topic, index))
            remaining = sum(
                1 for offset in offsets if committed_offset is None or offset >= committed_offset
            )
            if remaining:
                how_far = (
                    "nothing is committed"
                    if committed_offset is None
                    else f"committed up to offset {committed_offset}"
                )
                missing.append(
                    f"  {topic}-{index}: {how_far}, {remaining} of {len(offsets)} are left"
                )
        if not missing or client.clock.monotonic() >= end:
            return missing
        await pause(_CONSUMED_PAUSE_S)
