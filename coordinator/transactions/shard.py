"""The state machine of one partition of `__transaction_state`: its transactional ids.

Other modules have the operations, functions of (shard, request, token, now).

Only `replay` changes `recorded`. `_unrecorded` is soft: the few fields that records do not include.

Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.transaction_records import (
    decode_transaction_key,
    decode_transaction_value,
)
from wirebroker.coordinator.outcome import Marker, Moment, Outcome, Timers
from wirebroker.coordinator.transactions.metadata import (
    EPOCH_BUMP,
    FLEXIBLE_RECORDS,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TV_0,
    Transaction,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.transactions.metadata import TopicPartition
    from wirebroker.coordinator.transactions.settings import TransactionSettings


class WriteMarkers(NamedTuple):
    """Effect: end a decided transaction in each of its partitions, then call `end.complete`."""

    transactional_id: str
    marker: Marker
    partitions: frozenset[TopicPartition]


class TransactionShard:
    """The transactional ids that hash to one partition.

    Attributes:
        coordinator_epoch: The partition's leader epoch; markers of an older one are refused.
        take_producer_id: Returns a new producer id, or raises COORDINATOR_LOAD_IN_PROGRESS.
        transaction_version: Returns the finalized level.
        ongoing: Ids in the recorded state Ongoing, which can time out.
    """

    __slots__ = (
        "_unrecorded",
        "coordinator_epoch",
        "ongoing",
        "recorded",
        "settings",
        "take_producer_id",
        "timers",
        "transaction_version",
    )

    def __init__(
        self,
        settings: TransactionSettings,
        *,
        coordinator_epoch: int,
        take_producer_id: Callable[[], int],
        transaction_version: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.coordinator_epoch = coordinator_epoch
        self.take_producer_id = take_producer_id
        self.transaction_version = transaction_version
        self.recorded: dict[str, Transaction] = {}
        self.ongoing: set[str] = set()
        self.timers = Timers()
        # Soft fields by id; ids are in `recorded`, or about to be.
        self._unrecorded: dict[str, Mapping[str, Any]] = {}

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the full state of an id, if known."""
        transaction = self.recorded.get(transactional_id)
        if transaction is None:
            return None
        unrecorded = self._unrecorded.get(transactional_id)
        return transaction if unrecorded is None else transaction._replace(**unrecorded)

    def find(self, transactional_id: str) -> Transaction:
        """Return the full state of an id.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING.
        """
        transaction = self.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    def check_client(self, client_version: int) -> None:
        """Refuse a client whose version needs records of a higher finalized level.

        Raises:
            KafkaError: UNSUPPORTED_VERSION.
        """
        if client_version > TV_0 and self.transaction_version() < FLEXIBLE_RECORDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    def move(self, target: Transaction) -> Outcome:
        """Return the outcome that makes `target` the state of its id."""
        version = self.transaction_version()
        transactional_id = target.transactional_id
        before = self._unrecorded.get(transactional_id)
        self._note(transactional_id, target.unrecorded(version))

        def on_failure(_error: ErrorCode, _now: Moment) -> Outcome:
            self._note(transactional_id, before)
            return Outcome()

        return Outcome([target.record(version)], on_failure=on_failure)

    def _note(self, transactional_id: str, unrecorded: Mapping[str, Any] | None) -> None:
        if unrecorded:
            self._unrecorded[transactional_id] = unrecorded
        else:
            self._unrecorded.pop(transactional_id, None)

    def apply(self, records: Sequence[CoordinatorRecord], producer_id: int) -> None:
        """Replay appended records."""
        for key, value in records:
            self.replay(key, value, producer_id)

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply a record; ignore those of newer versions.

        Raises:
            MalformedFrameError: The record is malformed.
        """
        del producer_id  # records here are not transactional
        transactional_id = decode_transaction_key(key)
        if transactional_id is None:
            return
        if value is None:
            self.recorded.pop(transactional_id, None)
            self._unrecorded.pop(transactional_id, None)
            self.ongoing.discard(transactional_id)
            return
        try:
            decoded = decode_transaction_value(value)
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            return
        transaction = Transaction.of_record(transactional_id, decoded)
        self.recorded[transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self.ongoing.add(transactional_id)
        else:
            self.ongoing.discard(transactional_id)

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """Do nothing: records here are not transactional."""

    def on_loaded(self, now: Moment) -> Outcome:
        """Continue decided transactions."""
        del now
        outcome = Outcome()
        for transaction in self.recorded.values():
            if transaction.state.is_prepared:
                outcome.effects.append(self.markers_of(transaction))
        return outcome

    def on_unloaded(self) -> Outcome:
        """Return no responses: there are no waiters."""
        return Outcome()

    def on_timer(self, event: Any, now: Moment) -> Outcome:
        """Fail: timeouts are checked at an interval, as in Kafka."""
        raise AssertionError(f"unknown event at {now}: {event!r}")

    def describe(self) -> str:
        """Describe the content for the log."""
        return f"{len(self.recorded)} transactional ids, {len(self.ongoing)} in a transaction"

    def markers_of(self, prepared: Transaction) -> WriteMarkers:
        """Return the effect of a decided transaction."""
        assert prepared.state.is_prepared
        marker = Marker(
            prepared.producer_id,
            prepared.producer_epoch,
            self.coordinator_epoch,
            prepared.state is TransactionState.PREPARE_COMMIT,
            prepared.client_version,
        )
        return WriteMarkers(prepared.transactional_id, marker, prepared.partitions)

    def check(self) -> None:
        """Assert the invariants."""
        assert self._unrecorded.keys() <= self.recorded.keys(), (
            "soft state belongs to a recorded id"
        )
        for transactional_id, transaction in self.recorded.items():
            assert transaction.last_producer_epoch == NO_EPOCH, "records do not contain it"
            assert transaction.transactional_id == transactional_id
            assert transaction.producer_epoch >= 0
            assert transaction.producer_id >= 0
            is_ongoing = transaction.state is TransactionState.ONGOING
            assert (transactional_id in self.ongoing) == is_ongoing
            if is_ongoing:
                assert transaction.partitions, "a transaction begins with a partition"
            elif not transaction.state.is_prepared:
                assert not transaction.partitions, "only unfinished transactions have partitions"
                assert transaction.next_producer_id == NO_PRODUCER_ID
            if transaction.next_producer_id != NO_PRODUCER_ID:
                assert transaction.client_version >= EPOCH_BUMP
        assert self.ongoing <= self.recorded.keys()
