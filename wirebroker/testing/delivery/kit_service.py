"""The delivery service's machine on a test broker, through the kit's client.

It writes without transactions: a broker that is killed in the middle of a step may repeat it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.groups.groups import commit, committed_of
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import TopicPartition, offsets_at
from wirebroker.client.topics.topics import create_topics, list_topics
from wirebroker.codecs.special_offsets import LATEST
from wirebroker.delivery.model.records import ReceivedRecord
from wirebroker.delivery.model.rules import dead_letters_of
from wirebroker.delivery.pending.machine import DeliveryMachine
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore
from wirebroker.testing.clients.sending import OutgoingRecord

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.record import Record
    from wirebroker.delivery.model.rules import DeliveryRules
    from wirebroker.delivery.pending.plan import TransactionPlan
    from wirebroker.testing.clients.sending import Sender

_MOST_RECORDS: Final = 1_000
_COMPACTED: Final = {"cleanup.policy": "compact"}


class KitService:
    """One instance, which owns all partitions."""

    def __init__(self, rules: DeliveryRules, sender: Sender) -> None:
        self._rules = rules
        self._sender = sender
        self._pending = TopicPartition(rules.pending_topic, 0)
        self._counts: dict[str, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._machine = DeliveryMachine(rules, self, pending_count=1, most_records=_MOST_RECORDS)

    def partition_count(self, topic: str, *, at_least: int = 1) -> int:
        """See KnownTopics; the counts are current."""
        del at_least
        return self._counts.get(topic, 0)

    def may_write(self, topic: str) -> bool:
        """See KnownTopics; the kit's broker has no authorizer."""
        del topic
        return True

    @property
    def pending_count(self) -> int:
        """The number of records that wait."""
        (count,) = self._machine.partitions[0].store.due_counts([(1 << 62) - 1])
        return count

    async def open(self, client: KafkaClient) -> None:
        """Create missing topics; find the position of each input partition.

        Raises:
            ClientError: A topic cannot be created or read.
        """
        self._counts = await list_topics(client)
        inputs = [*self._rules.input_topics, *map(dead_letters_of, self._rules.input_topics)]
        missing = {topic: 1 for topic in inputs if topic not in self._counts}
        if missing:
            await create_topics(client, missing, configs={})
        if self._pending.topic not in self._counts:
            await create_topics(client, {self._pending.topic: 1}, configs=_COMPACTED)
        self._counts = await list_topics(client)
        committed = await committed_of(client, self._rules.group)
        self._positions = {
            place: committed.get(place, 0)
            for topic in self._rules.input_topics
            for place in (TopicPartition(topic, number) for number in range(self._counts[topic]))
        }
        self._machine.partitions[0] = PendingPartition(0, PendingStore(None), 0)

    def close(self) -> None:
        """Forget everything."""
        self._machine.release((), list(self._machine.partitions))

    async def work(self, client: KafkaClient, now_ms: int) -> None:
        """Read new records and deliver due entries, until there is nothing to do.

        Raises:
            ClientError: A request failed.
        """
        while True:
            await self._read(client)
            self._counts = await list_topics(client)
            plan = self._machine.plan_intake(now_ms) or self._machine.plan_delivery(now_ms)
            if plan is None:
                return
            await self._carry_out(client, plan, now_ms)
            self._machine.committed(plan)

    async def _read(self, client: KafkaClient) -> None:
        partition = self._machine.partitions[0]
        places = {**self._positions, self._pending: partition.next_offset}
        ends = await offsets_at(client, dict.fromkeys(places, LATEST), read_committed=True)

        def take(place: TopicPartition, records: list[Record]) -> bool:
            for record in records:
                if place == self._pending:
                    partition.apply(record.offset, record.key, record.value)
                else:
                    self._machine.receive(_received(place, record))
            return True

        reader = PartitionsReader(client, places, take, until=ends, read_committed=True)
        await reader.run()
        partition.reach(reader.positions.pop(self._pending))
        self._positions = reader.positions

    async def _carry_out(self, client: KafkaClient, plan: TransactionPlan, now_ms: int) -> None:
        for output in plan.records(self._pending.topic):
            await self._sender.send(
                client,
                OutgoingRecord(
                    topic=output.topic,
                    partition=output.partition,
                    key=output.key,
                    value=output.value,
                    headers=tuple(output.headers),
                    timestamp_ms=now_ms,
                ),
            )
        offsets = {TopicPartition(*place): offset for place, offset in plan.input_offsets.items()}
        if offsets:
            await commit(client, self._rules.group, offsets)


def _received(place: TopicPartition, record: Record) -> ReceivedRecord:
    return ReceivedRecord(
        topic=place.topic,
        partition=place.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
    )
