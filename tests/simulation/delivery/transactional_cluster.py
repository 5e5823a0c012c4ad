"""A cluster in memory, with transactions as clients see them: markers, fencing, compaction.

A transaction is decided at its coordinator. In each partition it becomes visible by a marker, at
different times. The committed offsets of the group are such a place, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from random import Random

Place = tuple[str, int]
OFFSETS: Place = ("__consumer_offsets", 0)


class RefusedError(Exception):
    """The request failed: the producer or the member is fenced."""


@dataclass(eq=False)
class Transaction:
    producer: str
    epoch: int
    places: set[Place] = field(default_factory=set)
    offsets: dict[Place, int] = field(default_factory=dict)
    is_committed: bool | None = None
    marked: set[Place] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return self.is_committed is not None and self.marked >= self.places


class LogRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple
    timestamp_ms: int
    transaction: Transaction | None


class Partition:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.records: list[LogRecord] = []
        self.end = 0

    def append(self, key, value, headers, now_ms, transaction) -> int:
        self.records.append(LogRecord(self.end, key, value, headers, now_ms, transaction))
        self.end += 1
        return self.end - 1

    @property
    def last_stable_offset(self) -> int:
        for record in self.records:
            owner = record.transaction
            if owner is not None and self.place not in owner.marked:
                return record.offset
        return self.end

    def committed(self, offset: int) -> list[LogRecord]:
        """Return what a read_committed consumer reads."""
        stable = self.last_stable_offset
        return [
            record
            for record in self.records
            if offset <= record.offset < stable
            and (record.transaction is None or record.transaction.is_committed)
        ]

    def compact(self, random: Random, read_up_to: int) -> None:
        """Clean a prefix.

        A record without a value goes if it is the only one of its key and all consumers are beyond
        it: delete.retention.ms is longer than they take.
        """
        limit = random.randint(0, self.last_stable_offset)
        prefix = [
            record
            for record in self.records
            if record.offset < limit
            and (record.transaction is None or record.transaction.is_committed)
        ]
        last = {record.key: record for record in prefix}
        counts: dict = {}
        for record in prefix:
            counts[record.key] = counts.get(record.key, 0) + 1
        kept = [
            record
            for record in prefix
            if last[record.key] is record
            and (record.value is not None or counts[record.key] > 1 or record.offset >= read_up_to)
        ]
        self.records = [*kept, *(record for record in self.records if record.offset >= limit)]


class TransactionalCluster:
    """Topics, one group and the producers' epochs."""

    def __init__(self, partitions: dict[str, int], random: Random) -> None:
        self.partitions = {
            (topic, number): Partition((topic, number))
            for topic, count in partitions.items()
            for number in range(count)
        }
        self.random = random
        self.now_ms = 1_800_000_000_000
        self.epochs: dict[str, int] = {}
        self.transactions: list[Transaction] = []
        self.offsets: dict[Place, int] = {}
        self.generation = 0
        self.members: list[str] = []
        # By static member: the life that joined last, as its member id.
        self.lives: dict[str, object] = {}
        # What tests plant: see test_delivery.py.
        self.checks_generation = True

    # -- producers

    def init_producer(self, producer: str) -> int:
        """Fence earlier producers of the id; complete their transactions."""
        self.epochs[producer] = self.epochs.get(producer, 0) + 1
        self._complete(producer)
        return self.epochs[producer]

    def _complete(self, producer: str) -> None:
        for transaction in self.transactions:
            if transaction.producer == producer:
                if transaction.is_committed is None:
                    self.decide(transaction, commit=False)
                while not transaction.is_over:
                    self.mark_one(transaction)

    def begin(self, producer: str, epoch: int) -> Transaction:
        """Begin a transaction once the producer's last one is complete."""
        self._check(producer, epoch)
        self._complete(producer)
        transaction = Transaction(producer, epoch)
        self.transactions.append(transaction)
        return transaction

    def produce(self, transaction: Transaction, place: Place, key, value, headers) -> None:
        self._check(transaction.producer, transaction.epoch)
        if transaction.is_committed is not None:
            raise RefusedError("the transaction timed out")
        transaction.places.add(place)
        self.partitions[place].append(key, value, headers, self.now_ms, transaction)

    def commit_offsets(
        self, transaction, offsets, member: str, life: object, generation: int
    ) -> None:
        self._check(transaction.producer, transaction.epoch)
        if transaction.is_committed is not None:
            raise RefusedError("the transaction timed out")
        is_current = self.is_member(member, life) and generation == self.generation
        if self.checks_generation and not is_current:
            raise RefusedError("the member is fenced")
        transaction.places.add(OFFSETS)
        transaction.offsets |= offsets

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        self._check(transaction.producer, transaction.epoch)
        if transaction.is_committed is not None:
            raise RefusedError("the transaction timed out")
        self.decide(transaction, commit=commit)

    def decide(self, transaction: Transaction, *, commit: bool) -> None:
        transaction.is_committed = commit

    def mark_one(self, transaction: Transaction) -> None:
        """Write one marker of a decided transaction."""
        missing = sorted(transaction.places - transaction.marked)
        place = self.random.choice(missing)
        transaction.marked.add(place)
        if place == OFFSETS and transaction.is_committed:
            self.offsets |= transaction.offsets

    def _check(self, producer: str, epoch: int) -> None:
        if self.epochs[producer] != epoch:
            raise RefusedError("the producer is fenced")

    # -- the group

    def stable_offset(self, place: Place) -> int | None:
        """Return a committed offset, or None while a transaction may change it (KIP-447)."""
        for transaction in self.transactions:
            if place in transaction.offsets and OFFSETS not in transaction.marked:
                return None
        return self.offsets.get(place, 0)

    def join(self, member: str, life: object) -> None:
        """Add a static member, or fence its earlier life (KIP-345)."""
        if member not in self.members:
            self.members.append(member)
            self.generation += 1
        self.lives[member] = life

    def is_member(self, member: str, life: object) -> bool:
        return member in self.members and self.lives[member] is life

    def kick(self, member: str) -> None:
        if member in self.members:
            self.members.remove(member)
            self.generation += 1

    def assignment(self, member: str, topics: tuple[str, ...]) -> list[Place]:
        places = sorted(place for place in self.partitions if place[0] in topics)
        index = self.members.index(member)
        return places[index :: len(self.members)]

    # -- time

    def turn(self) -> None:
        """Write some markers; time out old transactions; sometimes compact."""
        for transaction in self.transactions:
            if transaction.is_committed is not None and not transaction.is_over:
                if self.random.random() < 0.3:
                    self.mark_one(transaction)
            elif transaction.is_committed is None and self.random.random() < 0.002:
                self.decide(transaction, commit=False)
        self.transactions = [each for each in self.transactions if not each.is_over]
