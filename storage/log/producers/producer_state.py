"""What a partition knows of its idempotent and transactional producers (KIP-98, KIP-360).

Per producer id: the epoch, the last five batches (to answer a retry with the offsets of the first
try), and the first offset of an open transaction. It is a function of the log: snapshots at offsets
(producer_snapshots.py) only shorten the replay.

Laws:
- A batch of sequence s is accepted if it follows the last one (after 2^31 - 1 comes 0). A producer
  that is not known (never seen, expired, its records deleted) may begin anywhere; a new epoch
  begins at 0; a lower epoch is fenced.
- check_append() and check_marker() change nothing; append() and end_transaction() take what was
  written, now or in another life.
- The first batch of a transaction needs the guard of verification.py.
- end_offset is the offset up to which the log is contained; no snapshot is above it.

The newest snapshot is read at first use: 10,000 partitions come back from a clean stop unread. The
owner of a log that serves calls read() before that, so that it happens on one thread, and a replay
(the snapshot is damaged) on none that must not wait.
Source: Kafka's ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.layout import TRANSACTIONAL_FLAG
from wirebroker.storage.log.index.transaction_index import AbortedTransaction
from wirebroker.storage.log.producers.producer_entry import (
    MAX_SEQUENCE,
    NO_EPOCH,
    NO_SEQUENCE,
    CompletedTransaction,
    ProducedBatch,
    ProducerEntry,
    fenced,
    from_row,
    out_of_order,
    to_row,
)
from wirebroker.storage.log.producers.producer_snapshots import ProducerSnapshots
from wirebroker.storage.log.producers.verification import Verifications

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.producers.producer_snapshot import SnapshotRow
    from wirebroker.storage.log.producers.verification import VerificationGuard

NO_PRODUCER_ID: Final = -1
_MAX_EPOCH: Final = 2**15 - 1
# From this transaction.version on a producer's epoch rises with each transaction's marker.
_EPOCH_BUMP_VERSION: Final = 2


class ProducerState:
    """The producers of one partition.

    Attributes:
        end_offset: Up to where the log is contained.
        expiration_ms: A producer that is idle for so long is forgotten.
        is_read: Whether the newest snapshot has been read, or need not be.
        ongoing_txns: First offset -> producer id of each open transaction.
        snapshots: The files that shorten a replay.
    """

    __slots__ = (
        "_completed",
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
        "ongoing_txns",
        "snapshots",
    )

    def __init__(self, files: Files, directory: str, *, expiration_ms: int) -> None:
        self.snapshots = ProducerSnapshots(files, directory)
        self._producers: dict[int, ProducerEntry] = {}
        # The lowest key bounds what read_committed may see.
        self.ongoing_txns: dict[int, int] = {}
        # First offset -> offset of the marker, until the high watermark has passed that.
        self._completed: dict[int, int] = {}
        self._verifications = Verifications()
        self._guards = self._verifications.guards
        self.end_offset = 0
        self.expiration_ms = expiration_ms
        self._unread_snapshot: int | None = None
        self._opened_ms = 0
        self._rebuild: Callable[[], None] | None = None
        self._is_replaying = False
        self.is_read = True

    # _unread_snapshot is not None => not is_read

    @property
    def producers(self) -> dict[int, ProducerEntry]:
        """Return the known producers by id; not to be changed."""
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
        """Return what the first batch of a transaction needs once the coordinator has agreed.

        Args:
            producer_id: Whose batch is to be written.
            sequence: Its first one.
            producer_epoch: Its epoch.
            supports_epoch_bump: See VerificationGuard.
            now_ms: The time now.

        Returns:
            None if the transaction is open here already, so nobody need be asked.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH: a later epoch is known here.
        """
        entry = self.producers.get(producer_id)
        if entry is not None:
            if entry.is_in_transaction(producer_epoch):
                return None
            if producer_epoch < entry.producer_epoch:
                raise fenced(producer_id, producer_epoch, entry)
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
        """Check a client's batch against what its producer wrote before; changes nothing.

        Args:
            header: A batch with a producer id.
            guard: From begin_verification, if the coordinator has agreed.

        Returns:
            The batch already written with the same sequences, if this is a retry; else None.

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
                f"Producer {producer_id} has an open transaction, the batch is not in it",
            )
        return None

    def check_verified(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        """Check a coordinator's batch, whose sequences mean nothing; changes nothing.

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
        """Check the end of a transaction that a coordinator asks for; changes nothing.

        With transaction.version 2 the marker has the next transaction's epoch already. One that
        comes a second time is taken once more, as long as that has not begun here.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self.producers.get(producer_id)
        if entry is None:
            return
        is_repeated = producer_epoch == entry.producer_epoch and (
            transaction_version < _EPOCH_BUMP_VERSION
            or entry.current_txn_first_offset < 0
            or producer_epoch == _MAX_EPOCH
        )
        if producer_epoch <= entry.producer_epoch and not is_repeated:
            raise fenced(producer_id, producer_epoch, entry)
        if coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Producer {producer_id} was last ended by coordinator epoch "
                f"{entry.coordinator_epoch}, this one has {coordinator_epoch}",
            )

    def append(self, header: BatchHeader) -> None:
        """Note a data batch that was written; its header has its final offsets."""
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
                self.ongoing_txns[header.base_offset] = producer_id

    def end_transaction(
        self,
        header: BatchHeader,
        *,
        is_abort: bool,
        coordinator_epoch: int,
        timestamp_ms: int,
    ) -> CompletedTransaction | None:
        """Note a transaction marker: the producer's open transaction, if any, ends here."""
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
        self.ongoing_txns.pop(first_offset, None)
        self._completed[first_offset] = header.base_offset
        return CompletedTransaction(header.producer_id, first_offset, header.base_offset, is_abort)

    def aborted_entry(self, completed: CompletedTransaction) -> AbortedTransaction:
        """Return what the transaction index is to hold of a transaction that was just aborted."""
        stable = min(self.ongoing_txns, default=completed.last_offset + 1)
        return AbortedTransaction(
            completed.producer_id, completed.first_offset, completed.last_offset, stable
        )

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of a transaction that isn't decided below the high watermark."""
        if self._unread_snapshot is not None:
            self._read_now()
        if self._completed:
            self.forget_decided(high_watermark)
        elif not self.ongoing_txns:
            return None
        return min((*self.ongoing_txns, *self._completed), default=None)

    def forget_decided(self, high_watermark: int) -> None:
        """Let go of transactions whose markers are below the high watermark."""
        if self._completed:
            self._completed = {
                first: last for first, last in self._completed.items() if last >= high_watermark
            }

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers idle for producer.id.expiration.ms; an open transaction holds them."""
        self._verifications.remove_expired(now_ms, self.expiration_ms)
        if not self._producers:
            return 0  # whatever an unread snapshot holds is filtered when it is read
        expired = [
            producer_id
            for producer_id, entry in self._producers.items()
            if entry.current_txn_first_offset < 0
            and now_ms - entry.last_timestamp_ms >= self.expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    # -- snapshots -------------------------------------------------------------------------

    def take_snapshot(self) -> bool:
        """Write the state at end_offset to a file, unless the last snapshot is as new.

        Returns:
            Whether a file was written.

        Raises:
            OSError: The disk failed.
        """
        offset = self.end_offset
        if offset <= self.snapshots.last_offset:
            return False
        self.snapshots.write(offset, self.as_rows())
        return True

    def read(self) -> bool:
        """Read the newest snapshot if that is still to be done; a small file.

        Returns:
            False if it is damaged: replay() is to be called before anything else.

        Raises:
            OSError: The disk failed.
        """
        offset = self._unread_snapshot
        if offset is not None:
            self.is_read = self._read_snapshot(offset, self._opened_ms)
            self._unread_snapshot = None
        return self.is_read

    def replay(self) -> None:
        """Find the state from older snapshots and the log. Long: not on the event loop.

        Raises:
            KafkaError: What the segments raise.
            OSError: The disk failed; it can be tried again.
        """
        assert self._rebuild is not None
        self._is_replaying = True
        try:
            self._rebuild()
        finally:
            self._is_replaying = False
        self.is_read = True

    def open_at(self, end_offset: int, rebuild: Callable[[], None], *, now_ms: int) -> None:
        """Stand at `end_offset`, whose snapshot exists, without reading it yet.

        Args:
            end_offset: The log's end after a clean stop; in `snapshots`.
            rebuild: Called at first use if the file turns out to be unusable.
            now_ms: Producers that have expired by now are left out when it is read.
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
        """Go back to the newest usable snapshot at or below `end_offset`.

        Snapshots outside (log_start_offset, end_offset] are deleted, and unusable ones. Afterwards
        `self.end_offset` is where the replay begins: the snapshot's offset or the log's start.

        Args:
            log_start_offset: See above.
            end_offset: See above.
            now_ms: Producers that have expired by now are left out.
            keep_up_to: Those up to it are left, as the replay is sure to come past them.
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
        """Know nothing, as if the log began at `end_offset`; files are left."""
        self._producers.clear()
        self.ongoing_txns.clear()
        self._completed.clear()
        self._guards.clear()
        self._unread_snapshot = None
        self.is_read = not self._is_replaying
        self.end_offset = end_offset
        self.snapshots.last_offset = 0

    def as_rows(self) -> list[SnapshotRow]:
        """Return the state as a snapshot holds it, by producer id. A thread may ask."""
        producers = list(self.producers.items())
        return sorted([to_row(producer_id, entry) for producer_id, entry in producers])

    def check(self) -> None:
        """Assert the laws above."""
        self.snapshots.check(self.end_offset)
        for entry in self._producers.values():
            offsets = [batch.last_offset for batch in entry.batches]
            assert offsets == sorted(set(offsets)), offsets
            assert not offsets or offsets[-1] < self.end_offset

    def _check_verified(
        self, header: BatchHeader, entry: ProducerEntry | None, guard: VerificationGuard | None
    ) -> None:
        """Refuse the first batch of a transaction that its coordinator doesn't vouch for."""
        if entry is not None:
            if entry.is_in_transaction(header.producer_epoch):
                return
            if header.producer_epoch < entry.producer_epoch:
                raise fenced(header.producer_id, header.producer_epoch, entry)
        if not self._verifications.is_present(header.producer_id, guard):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has no transaction with this partition",
            )

    def _read_now(self) -> None:
        if not self.read():
            self.replay()

    def _read_snapshot(self, offset: int, now_ms: int) -> bool:
        """Read a snapshot file into an empty state.

        Args:
            offset: Which one.
            now_ms: What has expired by now is left out, as in Kafka.
        """
        rows = self.snapshots.read(offset)
        if rows is None:
            return False
        for row in rows:
            is_open = row.current_txn_first_offset >= 0
            if not is_open and now_ms - row.timestamp_ms >= self.expiration_ms:
                continue
            self._producers[row.producer_id] = from_row(row)
            if is_open:
                self.ongoing_txns[row.current_txn_first_offset] = row.producer_id
        return True
