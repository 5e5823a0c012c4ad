"""The state of one transactional id: an immutable value, its transitions (README.md), its record.

With TV2 (transaction.version 2, KIP-890) every end of a transaction begins the next epoch, or a new
producer id when the epochs are used up. A client's epoch is at most LAST_CLIENT_EPOCH, so that one
is always left for fencing.

Source: Kafka's TransactionMetadata and TransactionState; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.text import camel_case
from wirebroker.codecs.coordinator_records import CoordinatorRecord
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.transaction_records import (
    LEGACY_VALUE_VERSION,
    VALUE_VERSION,
    encode_transaction_value,
    transaction_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1

LAST_CLIENT_EPOCH: Final = 32_766
_LAST_EPOCH: Final = 32_767

# transaction.version: 1 has version 1 of the records, 2 a new epoch for each transaction.
TV_0: Final = 0
FLEXIBLE_RECORDS: Final = 1
EPOCH_BUMP: Final = 2

TopicPartition = tuple[str, int]


def indexes_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition indexes of each topic, in the given order."""
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return indexes


class TransactionState(IntEnum):
    """The states with Kafka's numbers and names."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    # Never in a record.
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Name in responses."""
        return _LABELS[self]

    @property
    def is_prepared(self) -> bool:
        """Whether markers are being written."""
        return self in _PREPARED


_LABELS: Final = {state: camel_case(state.name) for state in TransactionState}
STATES_BY_LABEL: Final = {label: state for state, label in _LABELS.items()}
_PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})


class Transaction(NamedTuple):
    """A transactional id in one state.

    Attributes:
        previous_producer_id: The id before the last transition.
        next_producer_id: The id after the transaction; -1 unless epochs are used up.
        producer_epoch: The current epoch; in Prepare* that of the markers.
        last_producer_epoch: The epoch that a retry may still have; not recorded.
        timeout_ms: Limit from the first partition to the end.
        partitions: Partitions that need markers.
        start_ms: Wall time of the first partition; -1: none.
        updated_ms: Wall time of the last transition.
        client_version: The client's transaction.version.
    """

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    updated_ms: int = NO_TIMESTAMP
    client_version: int = TV_0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the client has used the last epoch."""
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    # -- transitions --------------------------------------------------------------------------

    def with_next_epoch(
        self, *, timeout_ms: int, now_ms: int, is_retry: bool = False, keep_last: bool
    ) -> Transaction:
        """InitProducerId: return the next epoch, or the current one again for a retry.

        A client with `is_retry` does not know the current epoch; with `keep_last` it named its
        epoch (KIP-360), so it may retry.
        """
        assert is_retry or not self.is_epoch_exhausted
        last = self.producer_epoch if keep_last else NO_EPOCH
        return self._moved(
            TransactionState.EMPTY,
            now_ms,
            producer_epoch=self.producer_epoch + (not is_retry),
            last_producer_epoch=self.last_producer_epoch if is_retry else last,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
        )

    def with_new_id(
        self, producer_id: int, *, timeout_ms: int, now_ms: int, keep_last: bool
    ) -> Transaction:
        """InitProducerId when the epochs are used up."""
        return self._moved(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if keep_last else NO_EPOCH,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
        )

    def with_partitions(
        self, added: frozenset[TopicPartition], *, now_ms: int, client_version: int
    ) -> Transaction:
        """AddPartitionsToTxn: begin or continue with more partitions."""
        is_begun = self.state is TransactionState.ONGOING
        return self._moved(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions | added,
            start_ms=self.start_ms if is_begun else now_ms,
            client_version=client_version,
        )

    def prepared(
        self, *, is_commit: bool, now_ms: int, client_version: int, next_producer_id: int
    ) -> Transaction:
        """Decide the transaction; from client_version 2 on in the next epoch."""
        epoch, last = self.producer_epoch, self.last_producer_epoch
        if client_version >= EPOCH_BUMP:
            # The very last epoch is invalid, but may be aborted.
            epoch, last = min(epoch + 1, _LAST_EPOCH), epoch
        is_begun = self.state is TransactionState.ONGOING
        return self._moved(
            TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=epoch,
            last_producer_epoch=last,
            next_producer_id=next_producer_id,
            # Also for the abort of an empty transaction.
            start_ms=self.start_ms if is_begun else now_ms,
            client_version=client_version,
        )

    def fenced(self, *, now_ms: int) -> Transaction:
        """Abort in an epoch that fences the client, before TV2."""
        return self._moved(
            TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, _LAST_EPOCH),
            last_producer_epoch=NO_EPOCH,
            next_producer_id=NO_PRODUCER_ID,
            client_version=TV_0,
        )

    def completed(self, *, now_ms: int) -> Transaction:
        """Complete the transaction."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        renewed = self.client_version >= EPOCH_BUMP and self.next_producer_id != NO_PRODUCER_ID
        return self._moved(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            now_ms,
            producer_id=self.next_producer_id if renewed else self.producer_id,
            producer_epoch=0 if renewed else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def _moved(self, state: TransactionState, now_ms: int, **changes: Any) -> Transaction:
        assert self.state in _FROM[state], f"{self.state.label} cannot become {state.label}"
        changes.setdefault("producer_id", self.producer_id)
        return self._replace(
            state=state, updated_ms=now_ms, previous_producer_id=self.producer_id, **changes
        )

    # -- on disk -----------------------------------------------------------------------------

    def unrecorded(self, transaction_version: int) -> Mapping[str, Any]:
        """Return the non-default fields that `record` does not include."""
        fields = (
            _UNRECORDED_FIELDS if transaction_version >= FLEXIBLE_RECORDS else _NOT_IN_OLD_RECORDS
        )
        values = ((name, getattr(self, name)) for name in fields)
        return {name: value for name, value in values if value != self._field_defaults[name]}

    def record(self, transaction_version: int) -> CoordinatorRecord:
        """Return the record at a finalized transaction.version."""
        fields: dict[str, Any] = {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "transaction_timeout_ms": self.timeout_ms,
            "transaction_status": int(self.state),
            "transaction_last_update_timestamp_ms": self.updated_ms,
            "transaction_start_timestamp_ms": self.start_ms,
            "transaction_partitions": None,
        }
        if self.state is not TransactionState.EMPTY:
            fields["transaction_partitions"] = [
                {"topic": topic, "partition_ids": sorted(ids)}
                for topic, ids in sorted(indexes_by_topic(self.partitions).items())
            ]
        version = LEGACY_VALUE_VERSION
        if transaction_version >= FLEXIBLE_RECORDS:
            version = VALUE_VERSION
            fields["previous_producer_id"] = self.previous_producer_id
            fields["next_producer_id"] = self.next_producer_id
            fields["client_transaction_version"] = self.client_version
        value = encode_transaction_value(version, **fields)
        return CoordinatorRecord(transaction_key(self.transactional_id), value)

    @classmethod
    def of_record(cls, transactional_id: str, value: Any) -> Transaction:
        """Return the state of a decoded value.

        Raises:
            MalformedFrameError: The state is invalid.
        """
        if not TransactionState.EMPTY <= value.transaction_status < TransactionState.DEAD:
            raise MalformedFrameError(f"a transaction has the state {value.transaction_status}")
        return cls(
            transactional_id,
            value.producer_id,
            value.previous_producer_id,
            value.next_producer_id,
            value.producer_epoch,
            NO_EPOCH,
            value.transaction_timeout_ms,
            TransactionState(value.transaction_status),
            frozenset(
                (entry.topic, index)
                for entry in value.transaction_partitions or ()
                for index in entry.partition_ids
            ),
            value.transaction_start_timestamp_ms,
            value.transaction_last_update_timestamp_ms,
            value.client_transaction_version,
        )


_UNRECORDED_FIELDS: Final = ("last_producer_epoch",)
_NOT_IN_OLD_RECORDS: Final = (
    *_UNRECORDED_FIELDS,
    "previous_producer_id",
    "next_producer_id",
    "client_version",
)

_IDLE: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)
_FROM: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: _IDLE,
    TransactionState.ONGOING: _IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}
