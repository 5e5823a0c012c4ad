"""The state machine of one instance: records and the time in, transactions out.

It does no I/O. Its owner passes committed records of the assigned partitions, carries out the
planned transactions, and reports their results:

    machine.receive(input_record)                    machine.partition(3).apply(offset, key, value)
    plan = machine.plan_intake(now_ms)      or      machine.plan_delivery(now_ms)
    machine.committed(plan)                 or      machine.aborted(plan, refusals)

Laws, on which exactly-once delivery rests (docs/decisions/0026-pending-records.md):

- An input record's entry and its offset are in one transaction.
- A delivery and the end of its entry are in one transaction, with the position of the partition. An
  instance that no longer owns the partition cannot commit the position.
- Entries of a partition are delivered only once it is loaded.
- One transaction with input records is open at a time: their offsets are committed in order. One
  delivers from a partition at a time: garbage is written before later entries end.
- No transaction is open when partitions are released. An aborted one is planned again.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.records.partitioning import partition_for
from wirebroker.delivery.model.dead_letter import (
    input_dead_letters,
    received_ms,
    rejected,
    undeliverable,
    unreadable,
)
from wirebroker.delivery.model.entry import (
    EntryCommand,
    EntryFormatError,
    PendingEntry,
    decode_entry,
    encode_entry,
)
from wirebroker.delivery.model.header_table import HeaderError
from wirebroker.delivery.model.records import OutputRecord
from wirebroker.delivery.model.routing import route
from wirebroker.delivery.pending.plan import EndedName, TransactionPlan
from wirebroker.delivery.pending.refusals import Refusals
from wirebroker.delivery.pending.unwritable import UnwritableTopics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from wirebroker.delivery.model.records import ReceivedRecord
    from wirebroker.delivery.model.rules import DeliveryRules
    from wirebroker.delivery.pending.known_topics import KnownTopics
    from wirebroker.delivery.pending.partition import PendingPartition
    from wirebroker.delivery.pending.store import StoredEntry


# Bounds the memory of a transaction, and its time on a slow network.
_MOST_BYTES: Final = 16 << 20


class _Share(NamedTuple):
    """A queue's share of a transaction: the most entries, and the plan's size at which it ends."""

    entries: int
    plan_bytes: int


class DeliveryMachine:
    """The work of one instance.

    Attributes:
        partitions: The assigned partitions of the pending topic.
    """

    def __init__(
        self, rules: DeliveryRules, topics: KnownTopics, *, pending_count: int, most_records: int
    ) -> None:
        """Begin without partitions.

        `pending_count` is the number of partitions of the pending topic. A transaction has at most
        about `most_records` and 16 MiB of each kind.
        """
        self.partitions: dict[int, PendingPartition] = {}
        self._rules = rules
        self._topics = topics
        self._pending_count = pending_count
        self._most_records = most_records
        self._received: deque[ReceivedRecord] = deque()
        # Ids and names of records in the open transaction: they are about to replace pending ones.
        self._overriding: list[tuple[str, str]] = []
        self._is_storing = False
        # Partitions from which an open transaction delivers.
        self._delivering: set[int] = set()
        self._refusals = Refusals()
        self._unwritable = UnwritableTopics()

    @property
    def received_count(self) -> int:
        """The number of input records that are not yet committed."""
        return len(self._received)

    def receive(self, record: ReceivedRecord) -> None:
        """Take an input record; those of a partition come in order, each once."""
        self._received.append(record)

    def release(self, inputs: Collection[tuple[str, int]], pending: Collection[int]) -> None:
        """Forget partitions that were revoked; no transaction with their records is open."""
        assert not (inputs and self._is_storing), "offsets of released partitions are in it"
        self._received = deque(
            record for record in self._received if (record.topic, record.partition) not in inputs
        )
        for number in pending:
            partition = self.partitions.pop(number, None)
            if partition is not None:
                partition.store.close()

    def next_due_ms(self) -> int | None:
        """Return when an entry is due next, or None."""
        times = [
            due_ms
            for partition in self._loaded()
            if (due_ms := partition.store.next_due_ms()) is not None
        ]
        return min(times, default=None)

    def plan_intake(self, now_ms: int) -> TransactionPlan | None:
        """Return the next transaction that stores input records, or None.

        Raises:
            RefusedDeadLetterError: A record can neither be stored nor made a dead letter.
        """
        if self._is_storing or not self._received:
            return None
        plan = TransactionPlan()
        for record in islice(self._received, self._most_records):
            plan.add(self._routed(record, plan, now_ms))
            plan.input_offsets[record.topic, record.partition] = record.offset + 1
            plan.received += 1
            if plan.size >= _MOST_BYTES:
                break
        self._is_storing = True
        return plan

    def plan_delivery(self, now_ms: int) -> TransactionPlan | None:
        """Return the next transaction that delivers due entries, or None.

        Raises:
            RefusedDeadLetterError: A record can be neither delivered nor made a dead letter.
        """
        plan = TransactionPlan()
        free = [each for each in self._loaded() if each.number not in self._delivering]
        crowded = self._plan_shares_of_garbage(free, plan)
        remaining = self._most_records - len(plan.ended)
        # All garbage first: see PendingPartition.
        ready = [each for each in free if each not in crowded]
        queues = self._due_queues(ready, now_ms, remaining)
        while queues and remaining > 0 and plan.size < _MOST_BYTES:
            share = _Share(
                max(1, remaining // len(queues)),
                plan.size + (_MOST_BYTES - plan.size) // len(queues),
            )
            partition, queue = queues.pop()
            remaining -= self._plan_queue(partition, queue, plan, now_ms, share)
        for partition, planned in crowded.items():
            remaining -= self._plan_garbage(partition, plan, remaining, planned)
        if plan.is_empty:
            return None
        self._delivering |= plan.pending_partitions.keys()
        return plan

    def _due_queues(
        self, partitions: Collection[PendingPartition], now_ms: int, most: int
    ) -> list[tuple[PendingPartition, int]]:
        """Return at most `most` queues of partitions with due entries, the earliest first.

        They share a transaction, so that many entries for one topic do not delay those for others.
        The last queue is served first: the queues with the longest backlog, at the start of the
        list, then get the parts of the transaction that other queues did not use.
        """
        due = [
            (due_ms, partition.number, queue)
            for partition in partitions
            for due_ms, queue in partition.store.due_queues(now_ms)
        ]
        due.sort()
        return [(self.partitions[number], queue) for _, number, queue in due[: max(most, 0)]]

    def _loaded(self) -> Iterator[PendingPartition]:
        return (partition for partition in self.partitions.values() if partition.is_ready)

    def committed(self, plan: TransactionPlan) -> None:
        """Apply a committed transaction."""
        self._refusals.forget([output.cause for output in plan.outputs])
        self._refusals.forget([name for _, name in plan.ended])
        if self._unwritable:
            self._unwritable.written({output.topic for output in plan.outputs})
        self._delivering -= plan.pending_partitions.keys()
        for partition, name in plan.ended:
            self.partitions[partition].end(name)
        if not plan.received:
            return
        for _ in range(plan.received):
            self._received.popleft()
        self._overriding.clear()
        self._is_storing = False

    def aborted(
        self,
        plan: TransactionPlan,
        refusals: Mapping[str, str],
        unwritable: Collection[str] = (),
        now_ms: int = 0,
    ) -> None:
        """Note that a transaction had no effect.

        `refusals` are the reasons for which a broker refused records for good, by their causes.
        `unwritable` are topics that could not be written: nothing is delivered to them for some
        seconds from `now_ms`.
        """
        self._unwritable.note(unwritable, now_ms)
        self._refusals.note(refusals, plan.letters)
        self._delivering -= plan.pending_partitions.keys()
        if not plan.received:
            return
        for delivery_id, name in self._overriding:
            owned = self.partitions.get(self._partition_of(delivery_id))
            if owned is not None:
                owned.expect_no_longer(delivery_id, name)
        self._overriding.clear()
        self._is_storing = False

    def _routed(self, record: ReceivedRecord, plan: TransactionPlan, now_ms: int) -> OutputRecord:
        """Return the output for an input record: an entry or a dead letter."""
        name = record.name
        refused = self._refusals.reason(name)
        try:
            if record.problem:
                raise HeaderError(record.problem)  # noqa: TRY301
            if refused is not None:
                raise HeaderError(f"the broker refused the entry: {refused}")  # noqa: TRY301
            entry = route(record, self._rules, now_ms)
        except HeaderError as error:
            letter = self._writable(rejected(record, str(error), self._rules))
            return self._letter(letter, plan)
        if entry.delivery_id is not None:
            self._expect(entry.delivery_id, name)
        return OutputRecord(
            self._rules.pending_topic,
            self._pending_partition(entry, record),
            name.encode(),
            encode_entry(entry),
            (),
            name,
        )

    def _expect(self, delivery_id: str, name: str) -> None:
        self._overriding.append((delivery_id, name))
        owned = self.partitions.get(self._partition_of(delivery_id))
        if owned is not None:
            owned.expect(delivery_id, name)

    def _pending_partition(self, entry: PendingEntry | EntryCommand, record: ReceivedRecord) -> int:
        if entry.delivery_id is not None:
            return self._partition_of(entry.delivery_id)
        if record.key is not None:
            return partition_for(record.key, self._pending_count)
        return record.offset % self._pending_count

    def _partition_of(self, delivery_id: str) -> int:
        return partition_for(delivery_id.encode(), self._pending_count)

    def _plan_shares_of_garbage(
        self, partitions: Collection[PendingPartition], plan: TransactionPlan
    ) -> dict[PendingPartition, int]:
        """Plan the end of garbage in half of a transaction, which partitions share.

        The other half is for due entries of partitions whose garbage is planned. Return the other
        partitions, with how many of their names are planned.
        """
        crowded: dict[PendingPartition, int] = {}
        waiting = [each for each in partitions if each.store.has_garbage]
        remaining = max(1, self._most_records // 2)
        for index, partition in enumerate(waiting):
            share = min(remaining, max(1, remaining // (len(waiting) - index)))
            planned = self._plan_garbage(partition, plan, share)
            remaining -= planned
            if partition.store.garbage(1, planned):
                crowded[partition] = planned
        return crowded

    def _plan_garbage(
        self, partition: PendingPartition, plan: TransactionPlan, most: int, planned: int = 0
    ) -> int:
        """Plan the end of at most so many names, after planned ones; return their number."""
        garbage = partition.store.garbage(most, planned)
        if garbage:
            plan.ended += [EndedName(partition.number, name) for name in garbage]
            plan.pending_partitions[partition.number] = partition.next_offset
        return len(garbage)

    def _plan_queue(
        self,
        partition: PendingPartition,
        queue: int,
        plan: TransactionPlan,
        now_ms: int,
        share: _Share,
    ) -> int:
        """Plan the due entries of a queue of a partition; return their number."""
        number, store = partition.number, partition.store
        count = 0
        postponed: dict[str, int] = {}
        for row in store.due_in_queue(queue, now_ms, share.entries):
            output = self._planned(row, partition, plan, now_ms)
            if isinstance(output, int):
                postponed[row.name] = output
                continue
            if output is None:
                continue
            plan.add(output)
            plan.ended.append(EndedName(number, row.name))
            plan.ended += [EndedName(number, name) for name in store.garbage_of(row.name)]
            count += 1
            if plan.size >= share.plan_bytes:
                break
        for name, until_ms in postponed.items():
            store.postpone(name, until_ms)
        if count:
            plan.pending_partitions[number] = partition.next_offset
        return count

    def _planned(
        self, row: StoredEntry, partition: PendingPartition, plan: TransactionPlan, now_ms: int
    ) -> OutputRecord | int | None:
        """Return the output for a due entry; None if it is about to be replaced.

        Return a time in milliseconds if its topic cannot be written until then.
        """
        try:
            entry = decode_entry(row.name, row.value)
        except EntryFormatError as error:
            return self._letter(unreadable(row.name, row.value, str(error), self._rules), plan)
        assert isinstance(entry, PendingEntry), "commands are not stored as entries"
        if partition.expects(entry.delivery_id):
            return None
        return self._delivery(entry, plan, now_ms, row.due_ms)

    def _delivery(
        self, entry: PendingEntry, plan: TransactionPlan, now_ms: int, due_ms: int
    ) -> OutputRecord | int:
        """Return the record for an entry's target, or its dead letter, or a time as above."""
        reason = self._reason_against(entry, now_ms)
        letter = self._writable(undeliverable(entry, reason, self._rules)) if reason else None
        topic = entry.target if letter is None else letter.topic
        until_ms = self._unwritable.until_ms(topic, now_ms)
        if until_ms is not None:
            return until_ms
        if letter is not None:
            return self._letter(letter, plan)
        plan.delivered += 1
        plan.retried += entry.attempt > 0
        if due_ms:  # zero: it was made due by a command
            plan.due_ms.append(max(due_ms, received_ms(entry.name)))
        return OutputRecord(
            entry.target, entry.partition, entry.key, entry.value, entry.headers, entry.name
        )

    def _reason_against(self, entry: PendingEntry, now_ms: int) -> str:
        """Return why an entry cannot be delivered, or ""."""
        refused = self._refusals.reason(entry.name)
        if refused is not None:
            return f"the broker refused the record: {refused}"
        if entry.expires_ms is not None and now_ms > entry.expires_ms:
            return f"expired: {now_ms - entry.expires_ms} ms too late"
        if not self._rules.is_target(entry.target):
            return f"topic {entry.target} is no longer in wirebroker.delivery.targets"
        needed = 1 if entry.partition is None else entry.partition + 1
        count = self._topics.partition_count(entry.target, at_least=needed)
        if not count or not self._topics.may_write(entry.target):
            missing = "" if count else f"there is no topic {entry.target}, or "
            return f"{missing}the service has no right to write to topic {entry.target}"
        if entry.partition is not None and entry.partition >= count:
            return (
                f"topic {entry.target} has no partition {entry.partition}: it has {count},"
                " numbered from 0"
            )
        return ""

    def _letter(self, letter: OutputRecord, plan: TransactionPlan) -> OutputRecord:
        plan.letters.add(letter.cause)
        return self._refusals.acceptable(letter)

    def _writable(self, letter: OutputRecord) -> OutputRecord:
        """Return a dead letter for the input's topic, if its own may not be written."""
        own_topic = input_dead_letters(letter)
        if letter.topic == own_topic or self._topics.may_write(letter.topic):
            return letter
        return letter._replace(topic=own_topic)
