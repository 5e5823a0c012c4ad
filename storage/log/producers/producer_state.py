"""The state of a partition's idempotent and transactional producers (KIP-98, KIP-360).

A batch is accepted if its sequence follows the last one (0 follows 2^31 - 1). An unknown producer
(new, expired, or with deleted records) may begin at any sequence; a new epoch begins at 0; a lower
epoch is fenced. The last five batches are known, to respond to a retry with the original offsets.
The first batch of a transaction needs the guard of verification.py.

The newest snapshot is read at first use, to restart quickly with 10,000 partitions. The owner of a
log in service calls read() before other calls, and replay() off the event loop.

Source: Kafka's ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_SEQUENCE
from wirebroker.codecs.records.layout import TRANSACTIONAL_FLAG
from wirebroker.storage.log.producers.producer_entry import (
    MAX_SEQUENCE,
    NO_EPOCH,
    ProducedBatch,
    ProducerEntry,
    fenced,
    from_row,
    out_of_order,
    to_row,
)
from wirebroker.storage.log.producers.producer_snapshots import ProducerSnapshots
from wirebroker.storage.log.producers.undecided_transactions import (
    CompletedTransaction,
    UndecidedTransactions,
)
from wirebroker.storage.log.producers.verification import Verifications

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.producers.producer_snapshot import SnapshotRow
    from wirebroker.storage.log.producers.verification import VerificationGuard


class ProducerState:
    """The producers of one partition.

    Attributes:
        end_offset: The state contains the log up to here.
        is_read: Whether the newest snapshot was read or need not be.
        transactions: The lowest first offset of these ends what read_committed shows.
    """

    __slots__ = (
        "_guards",
        "_is_replaying",
        "_opened_ms",
        "_producers",
        "_rebuild",
        "_unread_snapshot",
        "_verifications",
        "end_offset",
        "expiration_ms",
        "is_read",
        "snapshots",
        "transactions",
    )

    def __init__(self, files: Files, directory: str, *, expiration_ms: int) -> None:
        self.snapshots = ProducerSnapshots(files, directory)
        self._producers: dict[int, ProducerEntry] = {}
        self.transactions = UndecidedTransactions()
        self._verifications = Verifications()
        self._guards = self._verifications.guards
        self.end_offset = 0
        self.expiration_ms = expiration_ms
        self._unread_snapshot: int | None = None
        self._opened_ms = 0
        self._rebuild: Callable[[], None] | None = None
        self._is_replaying = False
        self.is_read = True

    # If _unread_snapshot is not None, is_read is False.

    @property
    def producers(self) -> dict[int, ProducerEntry]:
        """The producers by id; read-only."""
        if self._unread_snapshot is not None:
            self._read_now()
        return self._producers

    # -- the append path -------------------------------------------------------------------

    def begin_verification(
        self,
        producer_id: int,
        *,
        sequence: int,
        producer_epoch: int,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> VerificationGuard | None:
        """Return the guard for a transaction's first batch; None if the transaction is open here.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH: a later epoch is known here.
        """
        entry = self.producers.get(producer_id)
        if entry is not None and entry.is_in_transaction(producer_id, producer_epoch):
            return None
        return self._verifications.begin(
            producer_id,
            sequence=sequence,
            producer_epoch=producer_epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def check_append(
        self, header: BatchHeader, *, guard: VerificationGuard | None = None
    ) -> ProducedBatch | None:
        """Validate a client's batch with a producer id; changes nothing.

        The guard is from begin_verification, once the coordinator has agreed.

        Returns:
            The stored batch with the same sequences if this is a retry.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        if self._unread_snapshot is not None:
            self._read_now()
        producer_id = header.producer_id
        entry = self._producers.get(producer_id)
        base_sequence = header.base_sequence
        epoch = header.producer_epoch
        is_next = True
        if entry is not None and epoch == entry.producer_epoch:
            batches = entry.batches
            last_sequence = batches[-1].last_sequence if batches else NO_SEQUENCE
            if base_sequence != last_sequence + 1 and (
                base_sequence or last_sequence != MAX_SEQUENCE
            ):
                duplicate = entry.find_duplicate(header)
                if duplicate is not None:
                    return duplicate
                is_next = False
        if header.attributes & TRANSACTIONAL_FLAG:
            self._check_verified(header, entry, guard)
        if self._guards:
            self._verifications.check_lowest_sequence(header, entry)
        if entry is None:
            return None
        if epoch < entry.producer_epoch:
            raise fenced(producer_id, epoch, entry)
        if not is_next:
            raise out_of_order(header, f"the last one was {entry.last_sequence}")
        if epoch != entry.producer_epoch and base_sequence and entry.producer_epoch != NO_EPOCH:
            raise out_of_order(header, f"epoch {epoch} is new and begins at 0")
        if entry.current_txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_FLAG:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {producer_id} has an open transaction, but the batch is not in it",
            )
        return None

    def check_verified(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        """Validate a coordinator's batch, whose sequences are ignored; changes nothing.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or INVALID_TXN_STATE.
        """
        self._check_verified(header, self.producers.get(header.producer_id), guard)

    def check_marker(
        self,
        producer_id: int,
        *,
        producer_epoch: int,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> None:
        """Validate a coordinator's transaction marker; changes nothing.

        With transaction.version 2 the marker has the next transaction's epoch. It may be repeated
        until that transaction begins here.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self.producers.get(producer_id)
        if entry is not None:
            entry.check_marker(
                producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )

    def append(self, header: BatchHeader) -> None:
        """Apply a stored data batch, with its final offsets."""
        if self._unread_snapshot is not None:
            self._read_now()
        producer_id = header.producer_id
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(header.producer_epoch)
        elif entry.producer_epoch != header.producer_epoch:
            entry.begin_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        last_sequence = header.base_sequence + delta
        if last_sequence > MAX_SEQUENCE:
            last_sequence -= MAX_SEQUENCE + 1
        timestamp_ms = header.max_timestamp
        last_offset = header.base_offset + delta
        entry.batches.append(ProducedBatch(last_sequence, last_offset, delta, timestamp_ms))
        entry.last_timestamp_ms = timestamp_ms
        self.end_offset = last_offset + 1
        if header.attributes & TRANSACTIONAL_FLAG:
            self._verifications.end_by_batch(producer_id)
            if entry.current_txn_first_offset < 0:
                entry.current_txn_first_offset = header.base_offset
                self.transactions.ongoing[header.base_offset] = producer_id

    def end_transaction(
        self,
        header: BatchHeader,
        *,
        is_abort: bool,
        coordinator_epoch: int,
        timestamp_ms: int,
    ) -> CompletedTransaction | None:
        """Apply a transaction marker; return the transaction that it ends, if any."""
        if self._unread_snapshot is not None:
            self._read_now()
        self._verifications.end_by_marker(header)
        entry = self._producers.setdefault(header.producer_id, ProducerEntry())
        first_offset = entry.current_txn_first_offset
        entry.begin_epoch(header.producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        entry.current_txn_first_offset = -1
        self.end_offset = header.last_offset + 1
        if first_offset < 0:
            return None
        self.transactions.end(first_offset, header.base_offset)
        return CompletedTransaction(header.producer_id, first_offset, header.base_offset, is_abort)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of an undecided transaction, or None."""
        if self._unread_snapshot is not None:
            self._read_now()
        return self.transactions.first_offset(high_watermark)

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers idle for producer.id.expiration.ms without open transaction."""
        self._verifications.remove_expired(now_ms, self.expiration_ms)
        if not self._producers:
            return 0
        expired = [
            producer_id
            for producer_id, entry in self._producers.items()
            if entry.is_expired(now_ms - self.expiration_ms)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    # -- snapshots -------------------------------------------------------------------------

    def take_snapshot(self) -> bool:
        """Write a snapshot; return False if the last one is up to date.

        Raises:
            OSError: The disk failed.
        """
        offset = self.end_offset
        if offset <= self.snapshots.last_offset:
            return False
        self.snapshots.write(offset, self.as_rows())
        return True

    def read(self) -> bool:
        """Read the newest snapshot, if not done yet.

        Returns:
            False if it is damaged: call replay() before anything else.

        Raises:
            OSError: The disk failed.
        """
        offset = self._unread_snapshot
        if offset is not None:
            self.is_read = self._read_snapshot(offset, self._opened_ms)
            self._unread_snapshot = None
        return self.is_read

    def replay(self) -> None:
        """Rebuild the state from older snapshots and the log. Slow.

        Raises:
            KafkaError: A segment cannot be read.
            OSError: The disk failed; the call can be repeated.
        """
        assert self._rebuild is not None
        self._is_replaying = True
        try:
            self._rebuild()
        finally:
            self._is_replaying = False
        self.is_read = True

    def open_at(self, end_offset: int, rebuild: Callable[[], None], *, now_ms: int) -> None:
        """Set the state to an existing snapshot, at the log's end, without reading it yet.

        replay() calls `rebuild` if the file is unusable.
        """
        assert end_offset in self.snapshots.offsets, f"{end_offset} in {self.snapshots.offsets}"
        self.reset(end_offset)
        self._unread_snapshot = end_offset
        self.is_read = False
        self.snapshots.last_offset = end_offset
        self._rebuild = rebuild
        self._opened_ms = now_ms

    def reload(
        self, *, log_start_offset: int, end_offset: int, now_ms: int, keep_up_to: int = 0
    ) -> None:
        """Load the newest usable snapshot at or below `end_offset`, without expired producers.

        Unusable snapshots and those outside (log_start_offset, end_offset] are deleted, except
        those up to `keep_up_to`, which the replay will pass. Afterwards the replay starts at
        `self.end_offset`.
        """
        snapshots = self.snapshots
        snapshots.delete_outside(log_start_offset, max(end_offset, keep_up_to))
        for offset in snapshots.newest_first(end_offset):
            self.reset(offset)
            if self._read_snapshot(offset, now_ms):
                snapshots.last_offset = offset
                return
            snapshots.delete(offset)
        self.reset(log_start_offset)
        snapshots.last_offset = log_start_offset

    def reset(self, end_offset: int) -> None:
        """Clear the state, as if the log began at `end_offset`."""
        self._producers.clear()
        self.transactions.clear()
        self._guards.clear()
        self._unread_snapshot = None
        self.is_read = not self._is_replaying
        self.end_offset = end_offset
        self.snapshots.last_offset = 0

    def as_rows(self) -> list[SnapshotRow]:
        """Return the snapshot rows; safe in a thread."""
        producers = list(self.producers.items())
        return sorted([to_row(producer_id, entry) for producer_id, entry in producers])

    def check(self) -> None:
        """Assert the order and bound of the offsets.

        Each producer's batches ascend and end below `end_offset`; no snapshot is above it.
        """
        self.snapshots.check(self.end_offset)
        for entry in self._producers.values():
            offsets = [batch.last_offset for batch in entry.batches]
            assert offsets == sorted(set(offsets)), offsets
            assert not offsets or offsets[-1] < self.end_offset

    def _check_verified(
        self, header: BatchHeader, entry: ProducerEntry | None, guard: VerificationGuard | None
    ) -> None:
        producer_id = header.producer_id
        if entry is not None and entry.is_in_transaction(producer_id, header.producer_epoch):
            return
        self._verifications.check_guard(producer_id, guard)

    def _read_now(self) -> None:
        if not self.read():
            self.replay()

    def _read_snapshot(self, offset: int, now_ms: int) -> bool:
        # Without expired producers, as in Kafka.
        rows = self.snapshots.read(offset)
        if rows is None:
            return False
        for row in rows:
            is_open = row.current_txn_first_offset >= 0
            if not is_open and now_ms - row.timestamp_ms >= self.expiration_ms:
                continue
            self._producers[row.producer_id] = from_row(row)
            if is_open:
                self.transactions.ongoing[row.current_txn_first_offset] = row.producer_id
        return True
