"""Steps about transactions: valid and invalid requests of clients before and after KIP-890.

A client of level 2 (Produce 12, TxnOffsetCommit 5, EndTxn 5) adds partitions by writing to them,
and each end of a transaction raises its epoch; an older client adds partitions first. Markers are
written shortly after the response, so `settle` follows every end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.record_sets import recent
from compat_tests.lockstep.steps import Expression, command
from compat_tests.lockstep.topics import Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves, StepsWithResult

_TIMEOUT_MS = 900_000  # long enough that no coordinator aborts during a run
_UNKNOWN_PRODUCER = 10**9
_LARGE = 10_000_000


@dataclass(slots=True)
class Transactional:
    name: str
    is_new: bool  # supports transaction.version 2
    producer_id: Expression | int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }


class Transactions(Topics):
    name = "transactions"
    keys = frozenset(
        {
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.END_TXN,
            ApiKey.PRODUCE,
            ApiKey.FETCH,
            ApiKey.WRITE_TXN_MARKERS,
            ApiKey.DESCRIBE_TRANSACTIONS,
            ApiKey.LIST_TRANSACTIONS,
            ApiKey.OFFSET_FETCH,
        }
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.clients: list[Transactional] = []

    def beginning(self) -> Moves:
        """Create topics and some clients of both levels."""
        yield from self.create(2)
        yield from self.create(1)
        yield command(["coordinator"])
        yield command(["transactions"])
        for number, is_new in enumerate((False, False, True, True)):
            client = Transactional(f"{self.prefix}x{number}", is_new)
            self.clients.append(client)
            yield from self.init(client)

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (30, self.produce),
            (16, self.add_partitions_to),
            (6, self.add_offsets),
            (8, self.commit_offsets),
            (20, self.end),
            (5, lambda: self.init(self._client())),
            (3, self.init_oddly),
            (4, self.verify),
            (6, self.describe),
            (6, self.read),
            (3, self.read_offsets),
            (2, self.write_markers),
            (1, self.unserved_version),
        ]

    def ending(self) -> Moves:
        names = [client.name for client in self.clients]
        yield from self.ask(ApiKey.DESCRIBE_TRANSACTIONS, {"transactional_ids": names})
        yield from self.read_offsets()
        yield from self.survey()

    # -- moves -------------------------------------------------------------------------------

    def init(self, client: Transactional) -> Moves:
        """Initialize a producer, which aborts an open transaction."""
        request = {
            "transactional_id": client.name,
            "transaction_timeout_ms": _TIMEOUT_MS,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        yield from self._init(client, request)

    def init_oddly(self) -> Moves:
        """Initialize with an id and an epoch, valid or not, or with an invalid timeout."""
        client = self._client()
        request = {
            "transactional_id": self.random.choice((client.name, client.name, "")),
            "transaction_timeout_ms": self.random.choice((_TIMEOUT_MS, 0, -1, 2**31 - 1)),
            "producer_id": self.random.choice((client.producer_id, _UNKNOWN_PRODUCER)),
            "producer_epoch": self.random.choice((client.epoch, client.epoch + 1, 0)),
        }
        if self.maybe(0.4):
            valid_request = {"transactional_id": client.name, "transaction_timeout_ms": _TIMEOUT_MS}
            request |= {**client.identity, **valid_request}
        yield from self._init(client, request)

    def add_partitions_to(self) -> Moves:
        """Add partitions as a client before v4."""
        client = self._client()
        topics = [
            {"name": topic.name, "partitions": self.some(topic.partitions, maximum=2)}
            for topic in self.some(self.topics, maximum=2)
        ]
        if self.maybe(0.05):
            topics.append({"name": self.strange_topic().name, "partitions": [0]})
        identity = self._perhaps_wrong(client)
        request = {f"v3_and_below_{name}": value for name, value in identity.items()}
        request["v3_and_below_topics"] = topics
        version = self.version(ApiKey.ADD_PARTITIONS_TO_TXN, highest=3)
        yield from self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=version)

    def verify(self) -> Moves:
        """Add or verify partitions as a broker, which never repeats an id."""
        transactions: dict[Any, dict[str, Any]] = {}
        for client in self.some(self.clients, maximum=2):
            topic = self.any_topic()
            partitions = {"name": topic.name, "partitions": self.some([*topic.partitions, 8])}
            identity = self._perhaps_wrong(client)
            is_question = self.maybe(0.8)
            transactions.setdefault(
                identity["transactional_id"],
                {**identity, "verify_only": is_question, "topics": [partitions]},
            )
        version = self.version(ApiKey.ADD_PARTITIONS_TO_TXN, lowest=4)
        request = {"transactions": [*transactions.values()]}
        yield from self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=version)

    def produce(self) -> Moves:
        """Produce in a transaction, added or not, perhaps out of sequence."""
        client = self._client()
        topic = self.any_topic()
        partition = topic.name, self.random.choice(topic.partitions)
        sequence = client.sequences.get(partition, 0)
        if self.maybe(0.05):
            sequence = self.random.choice((0, sequence + 1, max(0, sequence - 1)))
        identity = self._perhaps_wrong(client, share=0.04)
        is_transactional = self.maybe(0.97)
        record_set = recent(
            self.random,
            producer_id=identity["producer_id"],
            producer_epoch=max(0, identity["producer_epoch"]),
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        request = {
            "transactional_id": client.name if self.maybe(0.98) else None,
            "acks": -1,
            "timeout_ms": 30_000,
            "topic_data": [
                {
                    **topic.both,
                    "partition_data": [{"index": partition[1], "records": record_set.records}],
                }
            ],
        }
        is_new = client.is_new != self.maybe(0.05)
        version = self.version(ApiKey.PRODUCE, 12 if is_new else 3, 99 if is_new else 11)
        answer = yield from self.ask(ApiKey.PRODUCE, request, version=version)
        if answer.is_good:
            client.sequences[partition] = sequence + record_set.record_count
        self.learn_ends(answer, [topic])

    def add_offsets(self) -> Moves:
        request = {**self._perhaps_wrong(self._client()), "group_id": self._group()}
        yield from self.ask(ApiKey.ADD_OFFSETS_TO_TXN, request)

    def commit_offsets(self) -> Moves:
        """Commit offsets in a transaction, added before or implicitly."""
        client = self._client()
        topic = self.strange_topic() if self.maybe(0.05) else self.any_topic()
        partitions = [
            {
                "partition_index": index,
                "committed_offset": self.random.randrange(50),
                "committed_leader_epoch": self.random.choice((-1, 0)),
                "committed_metadata": self.random.choice(("", "m", None, "m" * 30)),
            }
            for index in self.some(topic.partitions, maximum=2)
        ]
        request = {
            **self._perhaps_wrong(client),
            "group_id": self._group(),
            "generation_id_or_member_epoch": self.random.choice((-1, -1, -1, 1)),
            "member_id": self.random.choice(("", "", "", "nobody")),
            "topics": [{"name": topic.name, "topic_id": topic.topic_id, "partitions": partitions}],
        }
        bounds = (5, 99) if client.is_new != self.maybe(0.1) else (0, 4)
        version = self.version(ApiKey.TXN_OFFSET_COMMIT, *bounds)
        yield from self.ask(ApiKey.TXN_OFFSET_COMMIT, request, version=version)

    def end(self) -> Moves:
        """Commit or abort a transaction, perhaps one that has not begun or has ended."""
        client = self._client()
        request = {**self._perhaps_wrong(client, share=0.06), "committed": self.maybe(0.6)}
        bounds = (5, 99) if client.is_new != self.maybe(0.05) else (0, 4)
        version = self.version(ApiKey.END_TXN, *bounds)
        answer = yield from self.ask(ApiKey.END_TXN, request, version=version)
        yield command(["settle", client.name])
        epoch = answer.number("producer_epoch")
        producer_id = answer.name("producer_id", "P")
        if answer.is_good and epoch >= 0 and producer_id is not None:
            if (producer_id, epoch) != (client.producer_id, client.epoch):
                client.sequences.clear()
            client.producer_id, client.epoch = producer_id, epoch

    def describe(self) -> Moves:
        if self.maybe(0.6):
            names = [client.name for client in self.some(self.clients)]
            if self.maybe(0.2):
                names.append(f"{self.prefix}unknown")
            yield from self.ask(ApiKey.DESCRIBE_TRANSACTIONS, {"transactional_ids": names})
            return
        states = ["Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "Nonsense"]
        request = {
            "state_filters": self.some(states, 0, 2),
            "producer_id_filters": [self._client().producer_id] if self.maybe(0.3) else [],
            "duration_filter": self.random.choice((-1, -1, 0, 10**9)),
        }
        yield from self.ask(ApiKey.LIST_TRANSACTIONS, request)

    def read(self) -> Moves:
        """Read with either isolation level, and list the end offsets."""
        topic = self.any_topic()
        index = self.random.choice(topic.partitions)
        isolation = self.random.choice((0, 1, 1))
        if self.maybe(0.3):
            partition = {"partition_index": index, "timestamp": self.random.choice((-1, -2, -3, 0))}
            request = {
                "replica_id": -1,
                "isolation_level": isolation,
                "topics": [{"name": topic.name, "partitions": [partition]}],
            }
            yield from self.ask(
                ApiKey.LIST_OFFSETS, request, version=self.version(ApiKey.LIST_OFFSETS, 7)
            )
            return
        fetch_partition = {
            "partition": index,
            "fetch_offset": self.random.randint(0, topic.ends[index]),
            "partition_max_bytes": self.random.choice((_LARGE, _LARGE, 300)),
        }
        request = {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": _LARGE,
            "isolation_level": isolation,
            "topics": [{**topic.both_in_fetch, "partitions": [fetch_partition]}],
        }
        yield from self.ask(ApiKey.FETCH, request)

    def read_offsets(self) -> Moves:
        group_id = self._group()
        request = {
            "group_id": group_id,
            "groups": [{"group_id": group_id, "topics": None}],
            "topics": None,
            "require_stable": self.maybe(0.5),
        }
        version = self.version(ApiKey.OFFSET_FETCH, 2)
        yield from self.ask(ApiKey.OFFSET_FETCH, request, version=version)

    def write_markers(self) -> Moves:
        """Write a marker as a coordinator, for a transaction or for none."""
        client = self._client()
        topic = self.any_topic()
        partitions = self.some([*topic.partitions, 9] if self.maybe(0.2) else topic.partitions)
        marker = {
            "producer_id": client.producer_id,
            "producer_epoch": max(0, client.epoch),
            "transaction_result": self.maybe(0.5),
            "topics": [{"name": topic.name, "partition_indexes": partitions}],
            "coordinator_epoch": 0,
            "transaction_version": 2 if client.is_new else 0,
        }
        yield from self.ask(ApiKey.WRITE_TXN_MARKERS, {"markers": [marker]})

    # -- parts -------------------------------------------------------------------------------

    def _client(self) -> Transactional:
        return self.random.choice(self.clients)

    def _group(self) -> str:
        return f"{self.prefix}g{self.random.randrange(2)}"

    def _perhaps_wrong(self, client: Transactional, share: float = 0.1) -> dict[str, Any]:
        """Return a producer id and epoch, perhaps wrong."""
        identity = client.identity
        if not self.maybe(share):
            return identity
        match self.random.randrange(4):
            case 0:
                identity["producer_epoch"] = max(0, client.epoch - 1)
            case 1:
                identity["producer_epoch"] = client.epoch + 1
            case 2:
                identity["producer_id"] = self.random.choice(
                    (_UNKNOWN_PRODUCER, self._client().producer_id)
                )
            case _:
                identity["transactional_id"] = self.random.choice(
                    (f"{self.prefix}unknown", self._client().name)
                )
        return identity

    def _init(self, client: Transactional, request: dict[str, Any]) -> StepsWithResult[None]:
        answer = yield from self.ask(ApiKey.INIT_PRODUCER_ID, request)
        yield command(["settle", client.name])
        producer_id = answer.name("producer_id", "P")
        if (
            answer.is_good
            and producer_id is not None
            and request["transactional_id"] == client.name
        ):
            client.producer_id, client.epoch = producer_id, answer.number("producer_epoch")
            client.sequences.clear()
