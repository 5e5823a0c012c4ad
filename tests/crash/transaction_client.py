"""A transactional producer of a broker that will crash, and what read_committed readers may see.

Before the EndTxn request nothing of a transaction is visible; after the response all of it, or
nothing if it was an abort; between, all or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.crash.clients import FETCH_OFFSETS_VERSION, Book
from tests.support.protocol.requests import FETCH_VERSION, fetch_request
from tests.support.protocol.transactional_producer import (
    AGAIN,
    NEW_AGE,
    OLD_AGES,
    Ask,
    TransactionalProducer,
    coordinators_of,
    error_of,
)
from tests.support.records.committed import committed_records_in, end_of_records
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from random import Random

    from tests.crash.broker_process import BrokerProcess

TRANSACTIONS_TOPIC = "x"
PARTITIONS = 2
_READ_COMMITTED = 1
_MOST_TRIES = 300  # of 0.1 s each
# The group's partition is being created.
_AGAIN = AGAIN | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Transaction(NamedTuple):
    is_commit: bool
    values: tuple[tuple[int, bytes], ...]  # partition, value
    offset: int  # committed by the group; -1: none

    @property
    def names(self) -> set[bytes]:
        """The values alone, which are unique."""
        return {value for _, value in self.values}


class TransactionClient:
    def __init__(self, name: str, random: Random, events: Callable[[], int]) -> None:
        self.name = name
        self.book = Book(events)
        self._random = random
        self._number = 0
        self._id = TransactionalProducer(name, timeout_ms=600_000)

    async def work(self, broker: BrokerProcess, transactions: int) -> None:
        """Initialize the producer, then commit and abort; the last transaction may stay open."""
        random = self._random
        self._id.versions = random.choice([OLD_AGES[0], NEW_AGE])
        await self.init(broker)
        for number in range(transactions):
            await pause(random.choice([0, 0, 0.05, 0.7]))
            is_last = number == transactions - 1
            await self._transact(broker, stays_open=is_last and random.random() < 0.4)
            if random.random() < 0.1:
                await self.init(broker)

    async def init(self, broker: BrokerProcess) -> None:
        """Fence the earlier producer and abort its transaction."""
        self._id.become(await self._ask(broker, self._id.init()))

    async def _transact(self, broker: BrokerProcess, *, stays_open: bool) -> None:
        random = self._random
        self._number += 1
        offset = self._number if random.random() < 0.5 else -1
        values: list[tuple[int, bytes]] = []
        for part in range(random.randint(0 if offset >= 0 else 1, 3)):
            index = random.randrange(PARTITIONS)
            values.append((index, f"{self.name}/{self._number}/{part}".encode()))
            await self._produce(broker, *values[-1])
        if offset >= 0:
            await self._commit_offset(broker, offset)
        if stays_open:
            return
        is_commit = random.random() < 0.6
        answer = await self.book.take(
            "transaction",
            Transaction(is_commit, tuple(values), offset),
            self._ask(broker, self._id.end(is_commit=is_commit)),
        )
        self._id.ended(answer)

    async def _produce(self, broker: BrokerProcess, index: int, value: bytes) -> None:
        topic_partition = TRANSACTIONS_TOPIC, index
        for ask in self._id.appending(
            {topic_partition: [value]}, timestamp_ms=broker.clock.now_ms()
        ):
            await self._ask(broker, ask)

    async def _commit_offset(self, broker: BrokerProcess, offset: int) -> None:
        member = {"group_id": self.name}
        for ask in self._id.committing(member, TRANSACTIONS_TOPIC, {0: offset}):
            await self._ask(broker, ask)

    async def _ask(self, broker: BrokerProcess, ask: Ask) -> Any:
        for _ in range(_MOST_TRIES):
            answer = await broker.ask(*ask)
            error = error_of(ask.key, answer)
            if error == ErrorCode.NONE:
                return answer
            assert error in _AGAIN, answer
            for find in coordinators_of(self.name):
                await broker.ask(*find)
            await pause(0.1)
        raise AssertionError(f"{self.name} is not served: {answer}")

    # -- checks ------------------------------------------------------------------------------

    def check(self, event: int, visible: Collection[bytes], offset: int) -> None:
        """Check the visible records against the book.

        Args:
            event: The event of the crash.
            visible: The values that read_committed readers see.
            offset: The group's committed offset, or -1.
        """
        done, started = self.book.at(event)
        own_values = {value for value in visible if value.startswith(f"{self.name}/".encode())}
        expected: set[bytes] = set()
        possible = {-1}
        for step in done:
            if step.detail.is_commit:
                expected |= step.detail.names
                possible = {max(step.detail.offset, *possible)}
        for step in started[len(done) :]:
            names = step.detail.names
            if step.detail.is_commit and (not names or names & own_values):
                expected |= names
                happened = {max(step.detail.offset, *possible)}
                possible = happened if names else possible | happened
        assert own_values == expected, (
            f"{self.name}: {expected - own_values} are lost, "
            f"{own_values - expected} were never committed"
        )
        assert offset in possible, f"{self.name}: offset {offset} is committed, not {possible}"

    async def committed(self, broker: BrokerProcess) -> int:
        topic = {"name": TRANSACTIONS_TOPIC, "partition_indexes": [0]}
        request = {"group_id": self.name, "topics": [topic], "require_stable": True}
        answer = await self._ask(broker, Ask(ApiKey.OFFSET_FETCH, FETCH_OFFSETS_VERSION, request))
        partition = answer.topics[0].partitions[0]
        assert partition.error_code == ErrorCode.NONE, partition
        return int(partition.committed_offset)


async def visible_values(broker: BrokerProcess, index: int) -> list[bytes]:
    values: list[bytes] = []
    offset = 0
    while True:
        request = fetch_request(
            {(TRANSACTIONS_TOPIC, index): offset}, isolation_level=_READ_COMMITTED
        )
        answer = await broker.ask(ApiKey.FETCH, FETCH_VERSION, request)
        (partition,) = answer.responses[0].partitions
        assert partition.error_code == ErrorCode.NONE, (partition, offset)
        if not partition.records:
            assert offset == partition.last_stable_offset == partition.high_watermark, partition
            return values
        values += [value for _, value in committed_records_in(partition)]
        offset = end_of_records(partition.records)
