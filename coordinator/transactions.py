"""The state of one partition of `__transaction_state`: its transactional ids.

The rooms beside this file hold the rules; each is a function of (shard, request, token, moment):

    transaction_init        InitProducerId
    transaction_partitions  AddPartitionsToTxn, AddOffsetsToTxn, verification for Produce
    transaction_end         EndTxn, fencing, completion after the markers
    transaction_expiry      timeouts, ids that nobody uses
    transaction_admin       DescribeTransactions, ListTransactions

Durable state changes in `replay` alone; coordinator/TRANSACTIONS.md has it all as tables. A decided
transaction (Prepare*) has markers under way from the moment its record is committed, or was
loaded: the effect WriteMarkers asks for them, `transaction_end.complete` notes that they are there.

Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.transaction_records import (
    decode_transaction_key,
    decode_transaction_value,
)
from wirebroker.coordinator.runtime import Marker, Moment, OnFailure, Outcome, Timers
from wirebroker.coordinator.transaction_metadata import (
    EPOCH_BUMP,
    FLEXIBLE_RECORDS,
    NO_PRODUCER_ID,
    TV_0,
    Transaction,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.coordinator.transaction_metadata import TopicPartition
    from wirebroker.coordinator.transaction_settings import TransactionSettings


class WriteMarkers(NamedTuple):
    """Effect: end a transaction in each of its partitions, then `transaction_end.complete`."""

    transactional_id: str
    marker: Marker
    partitions: frozenset[TopicPartition]


class TransactionShard:
    """The transactional ids that hash to one partition.

    Attributes:
        coordinator_epoch: The leader epoch under which this node leads the partition; markers of
            an older one are refused.
        take_producer_id: Gives an id that no producer ever had; raises COORDINATOR_LOAD_IN_PROGRESS
            while there is none.
        transaction_version: The finalized level now.
    """

    __slots__ = (
        "_expected",
        "coordinator_epoch",
        "ongoing",
        "settings",
        "take_producer_id",
        "timers",
        "transaction_version",
        "transactions",
        "unread_kinds",
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
        self.transactions: dict[str, Transaction] = {}
        # Ids whose transaction is Ongoing: those that can time out.
        self.ongoing: set[str] = set()
        self.timers = Timers()
        # Records that are left by something newer, or an upgrade that was called off.
        self.unread_kinds: Counter[int] = Counter()
        # What a record that is about to be replayed says, with what only memory knows.
        self._expected: dict[str, Transaction] = {}

    def find(self, transactional_id: str) -> Transaction:
        """Return a transactional id.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING.
        """
        found = self.transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return found

    def check_client(self, client_version: int) -> None:
        """Refuse a client that goes by what no record of the finalized level can say.

        Raises:
            KafkaError: UNSUPPORTED_VERSION.
        """
        if client_version > TV_0 and self.transaction_version() < FLEXIBLE_RECORDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    # -- records -----------------------------------------------------------------------------

    def move(self, target: Transaction) -> Outcome:
        """Return the outcome that makes `target` the state of its id."""
        self._expected[target.transactional_id] = target
        return Outcome([target.record(self.transaction_version())], on_failure=self._forget(target))

    def _forget(self, target: Transaction) -> OnFailure:
        def on_failure(_error: ErrorCode, _moment: Moment) -> Outcome:
            self._expected.pop(target.transactional_id, None)
            return Outcome()

        return on_failure

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Take over a record that is in the log.

        Raises:
            MalformedFrameError: It cannot be read.
        """
        del producer_id  # nobody writes here in a transaction
        transactional_id = decode_transaction_key(key)
        if transactional_id is None:
            self.unread_kinds[int.from_bytes(key[:2])] += 1
            return
        if value is None:
            self.transactions.pop(transactional_id, None)
            self.ongoing.discard(transactional_id)
            return
        try:
            decoded = decode_transaction_value(value)
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            self.unread_kinds[-1] += 1
            return
        found = Transaction.of_record(transactional_id, decoded)
        expected = self._expected.pop(transactional_id, None)
        if expected is not None:
            assert expected.producer_id == found.producer_id
            assert expected.producer_epoch == found.producer_epoch
            assert expected.state is found.state
            found = expected
        self.transactions[transactional_id] = found
        if found.state is TransactionState.ONGOING:
            self.ongoing.add(transactional_id)
        else:
            self.ongoing.discard(transactional_id)

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """Take no notice: nobody writes here in a transaction."""

    # -- life --------------------------------------------------------------------------------

    def on_loaded(self, moment: Moment) -> Outcome:
        """Begin to serve what was replayed: go on with what is decided."""
        del moment
        outcome = Outcome()
        for transaction in self.transactions.values():
            if transaction.state.is_prepared:
                outcome.effects.append(self.markers_of(transaction))
        return outcome

    def on_unloaded(self) -> Outcome:
        """Nobody waits in a shard of transactions."""
        return Outcome()

    def on_timer(self, event: Any, moment: Moment) -> Outcome:
        """No timers are set: timeouts are looked for at an interval, as in Kafka."""
        raise AssertionError(f"unknown event at {moment}: {event!r}")

    def describe(self) -> str:
        """Say in a few words what it holds."""
        return f"{len(self.transactions)} transactional ids, {len(self.ongoing)} in a transaction"

    def markers_of(self, prepared: Transaction) -> WriteMarkers:
        """Return the effect that writes the markers of a decided transaction."""
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
        """Assert the laws of all transactional ids."""
        assert not self._expected, "what is expected is replayed at once, or forgotten"
        for transactional_id, each in self.transactions.items():
            assert each.transactional_id == transactional_id
            assert each.producer_epoch >= 0
            assert each.producer_id >= 0
            is_ongoing = each.state is TransactionState.ONGOING
            assert (transactional_id in self.ongoing) == is_ongoing
            if is_ongoing:
                assert each.partitions, "a transaction begins with a partition"
            elif not each.state.is_prepared:
                assert not each.partitions, "markers are due only until a transaction has ended"
                assert each.next_producer_id == NO_PRODUCER_ID
            if each.next_producer_id != NO_PRODUCER_ID:
                assert each.client_version >= EPOCH_BUMP
        assert self.ongoing <= self.transactions.keys()
