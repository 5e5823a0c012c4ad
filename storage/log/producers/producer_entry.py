"""The state of one producer id.

Source: Kafka's ProducerStateEntry, BatchMetadata, CompletedTxn.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_SEQUENCE
from wirebroker.storage.log.producers.producer_snapshot import SnapshotRow

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader

NO_EPOCH: Final = -1
MAX_SEQUENCE: Final = 2**31 - 1
# An idempotent producer's max.in.flight.requests.per.connection.
BATCHES_KEPT: Final = 5
_MAX_EPOCH: Final = 2**15 - 1
# From this transaction.version on, each marker raises the producer's epoch.
_EPOCH_BUMP_VERSION: Final = 2


class ProducedBatch(NamedTuple):
    """A stored batch, for the response to its retry."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_offset(self) -> int:
        """The offset of its first record."""
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        """The sequence of its first record."""
        sequence = self.last_sequence - self.offset_delta
        return sequence if sequence >= 0 else sequence + MAX_SEQUENCE + 1


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp_ms",
        "producer_epoch",
    )

    def __init__(self, producer_epoch: int = NO_EPOCH) -> None:
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = -1
        self.last_timestamp_ms = -1
        self.current_txn_first_offset = -1  # -1: none is open
        # oldest first, all of one epoch
        self.batches: deque[ProducedBatch] = deque(maxlen=BATCHES_KEPT)

    @property
    def last_sequence(self) -> int:
        """The last record's sequence; -1 if no batch of this epoch is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def is_in_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a transaction of this epoch is open.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH: a later epoch is known.
        """
        if producer_epoch < self.producer_epoch:
            raise fenced(producer_id, producer_epoch, self)
        return self.current_txn_first_offset >= 0 and self.producer_epoch == producer_epoch

    def is_expired(self, before_ms: int) -> bool:
        """Return whether no transaction is open and the last batch is from `before_ms` or older."""
        return self.current_txn_first_offset < 0 and self.last_timestamp_ms <= before_ms

    def find_duplicate(self, header: BatchHeader) -> ProducedBatch | None:
        """Return the batch of this epoch with the same sequences, or None."""
        delta = header.last_offset_delta
        for batch in self.batches:
            if batch.offset_delta == delta and batch.base_sequence == header.base_sequence:
                return batch
        return None

    def check_marker(
        self,
        producer_id: int,
        *,
        producer_epoch: int,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> None:
        """Validate a transaction marker; see ProducerState.check_marker."""
        is_repeated = producer_epoch == self.producer_epoch and (
            transaction_version < _EPOCH_BUMP_VERSION
            or self.current_txn_first_offset < 0
            or producer_epoch == _MAX_EPOCH
        )
        if producer_epoch <= self.producer_epoch and not is_repeated:
            raise fenced(producer_id, producer_epoch, self)
        if coordinator_epoch < self.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Producer {producer_id} had its last marker from coordinator epoch "
                f"{self.coordinator_epoch}, this marker has {coordinator_epoch}",
            )

    def begin_epoch(self, producer_epoch: int) -> None:
        """Set the epoch; forget the batches of another one."""
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


def to_row(producer_id: int, entry: ProducerEntry) -> SnapshotRow:
    """Return a producer's snapshot row."""
    last = entry.batches[-1] if entry.batches else ProducedBatch(NO_SEQUENCE, -1, 0, -1)
    return SnapshotRow(
        producer_id,
        entry.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp_ms,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def from_row(row: SnapshotRow) -> ProducerEntry:
    """Return the producer of a snapshot row."""
    entry = ProducerEntry(row.producer_epoch)
    entry.coordinator_epoch = row.coordinator_epoch
    entry.last_timestamp_ms = row.timestamp_ms
    entry.current_txn_first_offset = row.current_txn_first_offset
    if row.last_offset >= 0:
        entry.batches.append(
            ProducedBatch(row.last_sequence, row.last_offset, row.offset_delta, row.timestamp_ms)
        )
    return entry


def fenced(producer_id: int, producer_epoch: int, entry: ProducerEntry) -> KafkaError:
    """Return the error for an epoch below the known one."""
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Producer {producer_id} has epoch {entry.producer_epoch}, the request has "
        f"{producer_epoch}",
    )


def out_of_order(header: BatchHeader, expectation: str) -> KafkaError:
    """Return the error for a sequence that does not follow the last one."""
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence}, {expectation}",
    )
