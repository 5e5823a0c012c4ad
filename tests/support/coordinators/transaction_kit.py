"""A transaction shard with a list as its log, which commits immediately or fails."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.outcome import Moment, Outcome, ProducerEpoch
from wirebroker.coordinator.transactions import end as transaction_end
from wirebroker.coordinator.transactions import expiry as transaction_expiry
from wirebroker.coordinator.transactions import partitions as transaction_partitions
from wirebroker.coordinator.transactions.end import End
from wirebroker.coordinator.transactions.init import Init, init_producer_id
from wirebroker.coordinator.transactions.metadata import EPOCH_BUMP, TV_0
from wirebroker.coordinator.transactions.partitions import Claim
from wirebroker.coordinator.transactions.settings import TransactionSettings
from wirebroker.coordinator.transactions.shard import TransactionShard, WriteMarkers
from wirebroker.storage.log.wall_clocks import WallClocks

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.transactions.metadata import Transaction

START_MS = 1_000_000
TIMEOUT_MS = 60_000
COORDINATOR_EPOCH = 7
# The transaction.version of clients that keep their epoch.
OLD = TV_0


class Transactions:
    """A shard, its log, and its pending markers."""

    def __init__(
        self,
        *,
        log: list[CoordinatorRecord] | None = None,
        version: int = EPOCH_BUMP,
        ids: Any = None,
    ) -> None:
        self.version = version
        self.ids = ids if ids is not None else itertools.count(100)
        self.shard = TransactionShard(
            TransactionSettings(),
            coordinator_epoch=COORDINATOR_EPOCH,
            take_producer_id=lambda: next(self.ids),
            transaction_version=lambda: self.version,
        )
        self.log: list[CoordinatorRecord] = []
        self.markers: list[WriteMarkers] = []
        self.now_ms = 0
        # How far the wall clock has jumped.
        self.jump_ms = 0
        self.clocks = WallClocks(START_MS, 0)
        self.fails_with: ErrorCode | None = None
        for record in log or ():
            self.log.append(record)
            self.shard.replay(*record)
        self._carry_out(self.shard.on_loaded(self.moment), [])

    @property
    def moment(self) -> Moment:
        return Moment(START_MS + self.now_ms + self.jump_ms, self.now_ms)

    def reloaded(self) -> Transactions:
        """Return the shard after a restart from the log."""
        loaded = Transactions(log=self.log, version=self.version, ids=self.ids)
        loaded.now_ms = self.now_ms
        return loaded

    def run(self, operation: Any) -> dict[str, Any]:
        """Run an operation (token, moment); return its response or error."""
        answers: list[dict[str, Any]] = []
        try:
            self._carry_out(operation(answers, self.moment), answers)
        except KafkaError as error:
            answers.append({"error_code": error.code})
        self.shard.check()
        return answers[0] if answers else {}

    def _carry_out(self, outcome: Outcome, answers: list[dict[str, Any]]) -> None:
        if outcome.records and self.fails_with is not None:
            if outcome.on_failure is not None:
                self._carry_out(outcome.on_failure(self.fails_with, self.moment), answers)
            answers.append({"error_code": self.fails_with})
            return
        for record in outcome.records:
            self.log.append(record)
            self.shard.replay(*record)
        answers += [response for _, response in outcome.answers]
        self.markers += outcome.effects

    # -- requests ----------------------------------------------------------------------------

    def init(
        self, name: str = "t", *, known: tuple[int, int] | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> Any:
        """Send InitProducerId; return (id, epoch) or the error."""
        epoch = None if known is None else ProducerEpoch(*known)
        request = Init(name, timeout_ms, epoch)
        answer = self.run(lambda token, at: init_producer_id(self.shard, request, token, at))
        return _known(answer)

    def add(
        self, producer: tuple[int, int], *partitions: int, name: str = "t", client: int = EPOCH_BUMP
    ) -> ErrorCode:
        claim = _claim(name, producer, partitions)
        add = transaction_partitions.add
        answer = self.run(lambda token, at: add(self.shard, claim, client, token, at))
        return answer["error_code"]

    def verify(self, producer: tuple[int, int], *partitions: int, name: str = "t") -> Any:
        try:
            errors = transaction_partitions.verify(self.shard, _claim(name, producer, partitions))
        except KafkaError as error:
            return error.code
        return {index: error for (_, index), error in errors.items()}

    def end(
        self,
        producer: tuple[int, int],
        *,
        is_commit: bool = True,
        name: str = "t",
        client: int = EPOCH_BUMP,
    ) -> Any:
        """Send EndTxn; return (id, epoch) of the next transaction, or the error."""
        request = End(name, *producer, is_commit, client)
        end = transaction_end.end_transaction
        return _known(self.run(lambda token, at: end(self.shard, request, token, at)))

    def write_markers(self) -> list[WriteMarkers]:
        """Complete and return all pending markers."""
        written, self.markers = self.markers, []
        for effect in written:
            self.run(lambda _, at, effect=effect: transaction_end.complete(self.shard, effect, at))
        return written

    def abort_timed_out(self) -> list[str]:
        """Run the periodic check; return the transactional ids that timed out."""
        clocks = self.clocks.moment(self.moment.wall_ms, self.now_ms / 1000)
        names = transaction_expiry.timed_out(self.shard, clocks)
        abort = transaction_expiry.abort_timed_out
        for name in names:
            self.run(lambda _, at, name=name: abort(self.shard, name, clocks, at))
        return names

    def of(self, name: str = "t") -> Transaction:
        return self.shard.find(name)

    def state(self, name: str = "t") -> str:
        return self.of(name).state.label

    def ended(self, *, is_commit: bool = True, client: int = EPOCH_BUMP) -> tuple[int, int]:
        """Run a complete transaction; return the client's state for the next one."""
        producer = self.init()
        assert self.add(producer, 0, client=client) is ErrorCode.NONE
        following = self.end(producer, is_commit=is_commit, client=client)
        self.write_markers()
        return following if client >= EPOCH_BUMP else producer


def with_epoch(transactions: Transactions, epoch: int) -> tuple[int, int]:
    """Give the transactional id "t" an epoch directly."""
    producer_id, _ = transactions.init()
    moved = transactions.of()._replace(producer_epoch=epoch)
    transactions.run(lambda *_: transactions.shard.move(moved))
    return producer_id, epoch


def _claim(name: str, producer: tuple[int, int], partitions: tuple[int, ...]) -> Claim:
    return Claim(name, *producer, frozenset(("a", index) for index in partitions))


def _known(answer: dict[str, Any]) -> Any:
    if answer.get("error_code", ErrorCode.NONE) is not ErrorCode.NONE:
        return answer["error_code"]
    return answer["producer_id"], answer["producer_epoch"]
