"""The delivery service's machine on a test broker, through the kit's client.

It writes without transactions: a broker that is killed in the middle of a step may repeat it.

A move of the clock is done in steps, from due time to due time, so that a record that expires
meanwhile is delivered as it would be by a service that runs all the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import commit, committed_of
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import TopicPartition, offsets_at
from wirebroker.client.topics.topics import create_topics, list_topics
from wirebroker.codecs.special_offsets import LATEST
from wirebroker.delivery.model.entry import read_head
from wirebroker.delivery.model.records import ReceivedRecord
from wirebroker.delivery.model.rules import dead_letters_of
from wirebroker.delivery.model.topic_configs import LETTERS_CONFIG, PENDING_CONFIG
from wirebroker.delivery.pending.machine import DeliveryMachine
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.refusals import FINAL_ERRORS
from wirebroker.delivery.pending.store import PendingStore
from wirebroker.testing.clients.sending import OutgoingRecord

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.record import Record
    from wirebroker.delivery.model.records import OutputRecord
    from wirebroker.delivery.model.rules import DeliveryRules
    from wirebroker.delivery.pending.plan import TransactionPlan
    from wirebroker.testing.clients.sending import Sender

_MOST_RECORDS: Final = 1_000


class KitService:
    """One instance, which owns all partitions."""

    def __init__(self, rules: DeliveryRules, sender: Sender) -> None:
        self._rules = rules
        self._sender = sender
        self._pending = TopicPartition(rules.pending_topic, 0)
        self._counts: dict[str, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._machine = DeliveryMachine(rules, self, pending_count=1, most_records=_MOST_RECORDS)
        # The time up to which due entries were delivered.
        self._reached_ms = 0
        # Written records of an aborted plan, by cause and topic: they are not written again.
        self._written: set[tuple[str, str]] = set()

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

    async def open(self, client: KafkaClient, now_ms: int) -> None:
        """Create missing topics; find the position of each input partition.

        Raises:
            ClientError: A topic cannot be created or read.
        """
        self._counts = await list_topics(client)
        configs: dict[str, dict[str, str]] = {topic: {} for topic in self._rules.input_topics}
        configs |= dict.fromkeys(map(dead_letters_of, self._rules.input_topics), LETTERS_CONFIG)
        configs[self._pending.topic] = PENDING_CONFIG
        for topic, config in configs.items():
            if topic not in self._counts:
                await create_topics(client, {topic: 1}, configs=config)
        self._counts = await list_topics(client)
        committed = await committed_of(client, self._rules.group)
        self._positions = {
            place: committed.get(place, 0)
            for topic in self._rules.input_topics
            for place in (TopicPartition(topic, number) for number in range(self._counts[topic]))
        }
        self._machine.partitions[0] = PendingPartition(0, PendingStore(None), 0)
        self._reached_ms = now_ms

    def close(self) -> None:
        """Forget everything."""
        self._machine.release((), list(self._machine.partitions))

    async def work(self, client: KafkaClient, now_ms: int) -> None:
        """Deliver due entries, read new records, and so on until there is nothing to do.

        Raises:
            ClientError: A request failed.
        """
        await self._refresh(client)
        while (due_ms := self._machine.next_due_ms()) is not None and due_ms <= now_ms:
            step_ms = min(max(due_ms, self._reached_ms), now_ms)
            plan = self._machine.plan_delivery(step_ms)
            if plan is None:
                break
            await self._carry_out(client, plan, now_ms)
            self._reached_ms = step_ms
        self._reached_ms = now_ms
        while plan := self._machine.plan_intake(now_ms) or self._machine.plan_delivery(now_ms):
            await self._carry_out(client, plan, now_ms)

    async def _refresh(self, client: KafkaClient) -> None:
        await self._read(client)
        self._counts = await list_topics(client)

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
        """Write a plan's records, then read the records that arrived meanwhile.

        If the broker refuses a record for good, the machine plans again, with a dead letter.
        """
        refusals: dict[str, str] = {}
        read_before = [
            output
            for output in plan.outputs
            if output.topic == self._pending.topic and (output.cause, output.topic) in self._written
        ]
        is_written = False
        try:
            await self._write(client, plan, now_ms, refusals)
            is_written = not refusals
        finally:
            if not is_written:
                self._machine.aborted(plan, refusals)
        if is_written:
            self._machine.committed(plan)
            self._written -= {(output.cause, output.topic) for output in plan.outputs}
            for output in read_before:
                assert output.value is not None
                delivery_id = read_head(output.cause, output.value).delivery_id
                if delivery_id is not None:
                    self._machine.partitions[0].expect_no_longer(delivery_id, output.cause)
        await self._refresh(client)

    async def _write(
        self, client: KafkaClient, plan: TransactionPlan, now_ms: int, refusals: dict[str, str]
    ) -> None:
        for output in plan.outputs:
            if (output.cause, output.topic) in self._written:
                continue
            try:
                await self._send(client, output, now_ms)
            except ClientError as error:
                if error.code not in FINAL_ERRORS:
                    raise
                refusals[output.cause] = str(error)
            else:
                self._written.add((output.cause, output.topic))
        if refusals:
            return
        for ended in plan.ended_records(self._pending.topic):
            await self._send(client, ended, now_ms)
        offsets = {TopicPartition(*place): offset for place, offset in plan.input_offsets.items()}
        if offsets:
            await commit(client, self._rules.group, offsets)

    async def _send(self, client: KafkaClient, output: OutputRecord, now_ms: int) -> None:
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
