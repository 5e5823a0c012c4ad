"""A transactional producer of a broker that will be cut, and what a read_committed reader may see.

What counts is when EndTxn was asked for and answered: before, nothing of a transaction is visible;
afterwards all of it, or nothing if it was an abort; between, all or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.crash.clients import FETCH_OFFSETS_VERSION, Book
from tests.support.batches import batch
from tests.support.committed import committed_records_in, end_of_records
from tests.support.requests import FETCH_VERSION, fetch_request, produce_request
from wirebroker.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from random import Random

    from tests.crash.broker_process import BrokerProcess

TRANSACTIONS_TOPIC = "x"
PARTITIONS = 2
_TRANSACTION_KEY = 1  # of FindCoordinator
_GROUP_KEY = 0
_READ_COMMITTED = 1
_MOST_TRIES = 300  # of a tenth of a second
_AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,  # the coordinator of a Produce is being loaded
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # the group's partition is being created
}


class Versions(NamedTuple):
    """The requests of a client of some age."""

    init: int
    produce: int
    commit_offsets: int
    end: int
    adds: bool  # partitions and groups by requests of their own


# transaction.version 0 or 1, and 2 (KIP-890).
AGES = (Versions(4, 11, 3, 3, True), Versions(5, 12, 5, 5, False))


class Transaction(NamedTuple):
    """What one transaction is to do."""

    is_commit: bool
    values: tuple[tuple[int, bytes], ...]  # partition, value
    offset: int  # committed for the group; -1: none

    @property
    def names(self) -> set[bytes]:
        """The values alone, of which there are no two."""
        return {value for _, value in self.values}


class TransactionClient:
    """One transactional id with a group of its own."""

    def __init__(self, name: str, random: Random, events: Callable[[], int]) -> None:
        self.name = name
        self.book = Book(events)
        self._random = random
        self._number = 0
        self._versions = AGES[0]
        self._producer = (-1, -1)
        self._sequences: dict[int, int] = {}

    async def work(self, broker: BrokerProcess, transactions: int) -> None:
        """Begin anew, then commit and abort; the last transaction may stay open."""
        random = self._random
        self._versions = random.choice(AGES)
        await self.init(broker)
        for number in range(transactions):
            await pause(random.choice([0, 0, 0.05, 0.7]))
            is_last = number == transactions - 1
            await self._transact(broker, stays_open=is_last and random.random() < 0.4)
            if random.random() < 0.1:
                await self.init(broker)

    async def init(self, broker: BrokerProcess) -> None:
        """Fence who was there before; afterwards its transaction is aborted."""
        request = {"transactional_id": self.name, "transaction_timeout_ms": 600_000}
        answer = await self._ask(broker, ApiKey.INIT_PRODUCER_ID, self._versions.init, request)
        self._become(answer)

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
        request = {**self._identity(), "committed": is_commit}
        answer = await self.book.take(
            "transaction",
            Transaction(is_commit, tuple(values), offset),
            self._ask(broker, ApiKey.END_TXN, self._versions.end, request),
        )
        if not self._versions.adds:
            self._become(answer)

    async def _produce(self, broker: BrokerProcess, index: int, value: bytes) -> None:
        if self._versions.adds:
            topic = {"name": TRANSACTIONS_TOPIC, "partitions": [index]}
            request = {f"v3_and_below_{key}": field for key, field in self._identity().items()}
            request["v3_and_below_topics"] = [topic]
            await self._ask(broker, ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        sequence = self._sequences.get(index, 0)
        self._sequences[index] = sequence + 1
        records = batch(
            value,
            timestamp_ms=broker.clock.now_ms(),
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        request = produce_request(
            {(TRANSACTIONS_TOPIC, index): records}, transactional_id=self.name
        )
        await self._ask(broker, ApiKey.PRODUCE, self._versions.produce, request)

    async def _commit_offset(self, broker: BrokerProcess, offset: int) -> None:
        group = {"group_id": self.name}
        if self._versions.adds:
            request = {**self._identity(), **group}
            await self._ask(broker, ApiKey.ADD_OFFSETS_TO_TXN, 3, request)
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        topics = [{"name": TRANSACTIONS_TOPIC, "partitions": [partition]}]
        request = {**self._identity(), **group, "topics": topics}
        version = self._versions.commit_offsets
        await self._ask(broker, ApiKey.TXN_OFFSET_COMMIT, version, request)

    def _identity(self) -> dict[str, Any]:
        producer_id, epoch = self._producer
        return {
            "transactional_id": self.name,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }

    def _become(self, answer: Any) -> None:
        self._producer = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def _ask(
        self, broker: BrokerProcess, key: ApiKey, version: int, request: Mapping[str, Any]
    ) -> Any:
        """Ask until it is served."""
        for _ in range(_MOST_TRIES):
            answer = await broker.ask(key, version, request)
            error = _error_of(key, answer)
            if error == ErrorCode.NONE:
                return answer
            assert error in _AGAIN, answer
            for key_type in (_TRANSACTION_KEY, _GROUP_KEY):
                find = {"key": self.name, "key_type": key_type}
                await broker.ask(ApiKey.FIND_COORDINATOR, 1, find)
            await pause(0.1)
        raise AssertionError(f"{self.name} is not served: {answer}")

    # -- afterwards --------------------------------------------------------------------------

    def check(self, event: int, visible: Collection[bytes], offset: int) -> None:
        """Hold what is visible against the book.

        Args:
            event: Where the run was cut.
            visible: What read_committed readers see.
            offset: The group's committed one; -1 if there is none.

        Raises:
            AssertionError: Something is lost, aborted, or there in part.
        """
        done, begun = self.book.at(event)
        mine = {value for value in visible if value.startswith(f"{self.name}/".encode())}
        expected: set[bytes] = set()
        possible = {-1}
        for step in done:
            if step.detail.is_commit:
                expected |= step.detail.names
                possible = {max(step.detail.offset, *possible)}
        for step in begun[len(done) :]:
            names = step.detail.names
            if step.detail.is_commit and (not names or names & mine):
                expected |= names
                happened = {max(step.detail.offset, *possible)}
                possible = happened if names else possible | happened
        assert mine == expected, (
            f"{self.name}: {expected - mine} are lost, {mine - expected} were never committed"
        )
        assert offset in possible, f"{self.name}: offset {offset} is committed, not {possible}"

    async def committed(self, broker: BrokerProcess) -> int:
        """Return the committed offset of the group; -1 if there is none."""
        topic = {"name": TRANSACTIONS_TOPIC, "partition_indexes": [0]}
        request = {"group_id": self.name, "topics": [topic], "require_stable": True}
        answer = await self._ask(broker, ApiKey.OFFSET_FETCH, FETCH_OFFSETS_VERSION, request)
        partition = answer.topics[0].partitions[0]
        assert partition.error_code == ErrorCode.NONE, partition
        return int(partition.committed_offset)


async def visible_values(broker: BrokerProcess, index: int) -> list[bytes]:
    """Return what a read_committed reader sees of a partition of the transactions' topic."""
    values: list[bytes] = []
    offset = 0
    while True:
        request = fetch_request(
            {(TRANSACTIONS_TOPIC, index): offset}, isolation_level=_READ_COMMITTED
        )
        answer = await broker.ask(ApiKey.FETCH, FETCH_VERSION, request)
        (found,) = answer.responses[0].partitions
        assert found.error_code == ErrorCode.NONE, (found, offset)
        if not found.records:
            assert offset == found.last_stable_offset == found.high_watermark, found
            return values
        values += [value for _, value in committed_records_in(found)]
        offset = end_of_records(found.records)


def _error_of(key: ApiKey, answer: Any) -> int:
    """Return the one error of an answer."""
    if key is ApiKey.PRODUCE:
        errors = [each.error_code for each in answer.responses[0].partition_responses]
    elif key is ApiKey.ADD_PARTITIONS_TO_TXN:
        topic = answer.results_by_topic_v3_and_below[0]
        errors = [each.partition_error_code for each in topic.results_by_partition]
    elif key is ApiKey.TXN_OFFSET_COMMIT:
        errors = [each.error_code for each in answer.topics[0].partitions]
    else:
        errors = [answer.error_code]
    return int(errors[0])
