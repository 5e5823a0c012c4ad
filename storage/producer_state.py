"""What a partition knows of its idempotent and transactional producers (KIP-98, KIP-360).

Per producer id: the epoch, the last five batches (to answer a retry with the offsets of the first
try), and the first offset of an open transaction. It is a function of the log: snapshots at offsets
(producer_snapshot.py) only shorten the replay.

Laws:
- A batch of sequence s is accepted if it follows the last one (after 2^31 - 1 comes 0). A producer
  that is not known (never seen, expired, its records deleted) may begin anywhere; a new epoch
  begins at 0; a lower epoch is fenced.
- check_append() and check_marker() change nothing; append() and end_transaction() take what was
  written, now or in another life.
- The first batch of a transaction needs the guard of verification.py.
- end_offset is the offset up to which the log is contained; snapshots rise and none is above it.

The newest snapshot is read at first use: 10,000 partitions come back from a clean stop unread. The
owner of a log that serves calls read() before that, so that it happens on one thread, and a replay
(the snapshot is damaged) on none that must not wait.
Source: Kafka's ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right, insort
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.record_batch import TRANSACTIONAL_FLAG
from wirebroker.storage.producer_entry import (
    MAX_SEQUENCE,
    NO_EPOCH,
    NO_SEQUENCE,
    CompletedTransaction,
    ProducedBatch,
    ProducerEntry,
    from_row,
    to_row,
)
from wirebroker.storage.producer_snapshot import (
    CorruptSnapshotError,
    SnapshotRow,
    decode_snapshot,
    encode_snapshot,
    snapshot_name,
)
from wirebroker.storage.segment_files import DELETED_SUFFIX
from wirebroker.storage.transaction_index import AbortedTransaction
from wirebroker.storage.verification import VerificationGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.codecs.record_batch import BatchHeader
    from wirebroker.storage.files import Files

_log = logging.getLogger(__name__)

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
        snapshots: Offsets of the snapshot files that exist, rising.
        unsynced_snapshots: Those written since the last flush; flushed with the segments.
    """

    __slots__ = (
        "_completed",
        "_directory",
        "_files",
        "_is_replaying",
        "_last_snapshot_offset",
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
        "unsynced_snapshots",
    )

    def __init__(self, files: Files, directory: str, *, expiration_ms: int) -> None:
        self._files = files
        self._directory = directory
        self._producers: dict[int, ProducerEntry] = {}
        # The lowest key bounds what read_committed may see.
        self.ongoing_txns: dict[int, int] = {}
        # First offset -> offset of the marker, until the high watermark has passed that.
        self._completed: dict[int, int] = {}
        # By producer id, until the first batch is written or a marker comes.
        self._verifications: dict[int, VerificationGuard] = {}
        self.snapshots: list[int] = []
        self.unsynced_snapshots: list[int] = []
        self.end_offset = 0
        self._last_snapshot_offset = 0
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
                raise _fenced(producer_id, producer_epoch, entry)
        guard = self._verifications.get(producer_id)
        if guard is None:
            guard = self._verifications[producer_id] = VerificationGuard(
                sequence=sequence,
                producer_epoch=producer_epoch,
                supports_epoch_bump=supports_epoch_bump,
                timestamp_ms=now_ms,
            )
        else:
            guard.note(sequence, producer_epoch)
        return guard

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
        if self._verifications:
            self._check_lowest_sequence(header, entry)
        if entry is None:
            return None
        if epoch < entry.producer_epoch:
            raise _fenced(producer_id, epoch, entry)
        if not is_next:
            raise _out_of_order(header, f"the last one was {entry.last_sequence}")
        if epoch != entry.producer_epoch and base_sequence and entry.producer_epoch != NO_EPOCH:
            raise _out_of_order(header, f"epoch {epoch} is new and begins at 0")
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
            raise _fenced(producer_id, producer_epoch, entry)
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
            self._verifications.pop(producer_id, None)
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
        guard = self._verifications.get(header.producer_id)
        # A marker that has the guard's own epoch has ended the transaction before the guard's.
        if guard and not (
            guard.supports_epoch_bump and guard.producer_epoch == header.producer_epoch
        ):
            del self._verifications[header.producer_id]
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
        if self._verifications:
            self._verifications = {
                producer_id: guard
                for producer_id, guard in self._verifications.items()
                if now_ms - guard.timestamp_ms < self.expiration_ms
            }
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

    def use_snapshots(self, offsets: Iterable[int]) -> None:
        """Take over the snapshot files that a listing of the directory showed."""
        self.snapshots = sorted(offsets)

    def take_snapshot(self) -> bool:
        """Write the state at end_offset to a file, unless the last snapshot is as new.

        Returns:
            Whether a file was written; it is named in unsynced_snapshots until a flush syncs it.
        """
        offset = self.end_offset
        if offset <= self._last_snapshot_offset:
            return False
        rows = [to_row(producer_id, entry) for producer_id, entry in list(self.producers.items())]
        self._files.write_whole(self.snapshot_path(offset), encode_snapshot(rows), sync=False)
        if offset not in self.snapshots:
            insort(self.snapshots, offset)
        self.unsynced_snapshots.append(offset)
        self._last_snapshot_offset = offset
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
        assert end_offset in self.snapshots, f"{end_offset} not in {self.snapshots}"
        self.reset(end_offset)
        self._unread_snapshot = end_offset
        self.is_read = False
        self._last_snapshot_offset = end_offset
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
        for offset in list(self.snapshots):
            if offset > max(end_offset, keep_up_to) or offset <= log_start_offset:
                self.delete_snapshot(offset)
        for offset in reversed(self.snapshots[: bisect_right(self.snapshots, end_offset)]):
            self.reset(offset)
            if self._read_snapshot(offset, now_ms):
                self._last_snapshot_offset = offset
                return
            self.delete_snapshot(offset)
        self.reset(log_start_offset)
        self._last_snapshot_offset = log_start_offset

    def reset(self, end_offset: int) -> None:
        """Know nothing, as if the log began at `end_offset`; files are left."""
        self._producers.clear()
        self.ongoing_txns.clear()
        self._completed.clear()
        self._verifications.clear()
        self._unread_snapshot = None
        self.is_read = not self._is_replaying
        self.end_offset = end_offset
        self._last_snapshot_offset = 0

    def delete_snapshot(self, offset: int) -> None:
        """Remove a snapshot file."""
        if self._forget_snapshot(offset):
            self._files.unlink(self.snapshot_path(offset))

    def set_aside_snapshot(self, offset: int) -> None:
        """Rename a snapshot file to `.deleted`; it is removed with its segment's files.

        Raises:
            OSError: The disk failed.
        """
        path = self.snapshot_path(offset)
        if self._forget_snapshot(offset):
            with suppress(FileNotFoundError):
                self._files.rename(path, path + DELETED_SUFFIX)

    def _forget_snapshot(self, offset: int) -> bool:
        """Take a snapshot off the lists; return whether it was there."""
        if offset in self.unsynced_snapshots:
            self.unsynced_snapshots.remove(offset)
        index = bisect_left(self.snapshots, offset)
        is_there = index < len(self.snapshots) and self.snapshots[index] == offset
        if is_there:
            del self.snapshots[index]
        return is_there

    def delete_stray_snapshots(self, segment_base_offsets: set[int]) -> None:
        """Keep the snapshots at segments' base offsets, and the newest if it is above them all."""
        highest = max(segment_base_offsets, default=-1)
        strays = [offset for offset in self.snapshots if offset not in segment_base_offsets]
        for offset in strays:
            if offset != strays[-1] or offset < highest:
                self.delete_snapshot(offset)

    def snapshot_path(self, offset: int) -> str:
        """Return the path of the snapshot file at `offset`."""
        return f"{self._directory}/{snapshot_name(offset)}"

    def as_rows(self) -> list[SnapshotRow]:
        """Return the state as a snapshot would hold it, by producer id (for tests and tools)."""
        return sorted(to_row(producer_id, entry) for producer_id, entry in self.producers.items())

    def check(self) -> None:
        """Assert the laws above."""
        assert self.snapshots == sorted(set(self.snapshots)), self.snapshots
        assert not self.snapshots or self.snapshots[-1] <= self.end_offset, (
            self.snapshots,
            self.end_offset,
        )
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
                raise _fenced(header.producer_id, header.producer_epoch, entry)
        if guard is None or self._verifications.get(header.producer_id) is not guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has no transaction with this partition",
            )

    def _check_lowest_sequence(self, header: BatchHeader, entry: ProducerEntry | None) -> None:
        """Let the batches that wait for the coordinator go first, in their order."""
        guard = self._verifications.get(header.producer_id)
        if guard is None:
            return
        if guard.supports_epoch_bump and header.base_sequence and not (entry and entry.batches):
            raise _out_of_order(header, "nothing is known of it, so it begins at 0")
        if header.base_sequence > guard.lowest_sequence:
            raise _out_of_order(header, f"{guard.lowest_sequence} was seen before")

    def _read_now(self) -> None:
        if not self.read():
            self.replay()

    def _read_snapshot(self, offset: int, now_ms: int) -> bool:
        """Read a snapshot file into an empty state.

        Args:
            offset: Which one.
            now_ms: What has expired by now is left out, as in Kafka.
        """
        try:
            rows = decode_snapshot(self._files.read_whole(self.snapshot_path(offset)))
        except (CorruptSnapshotError, FileNotFoundError) as error:
            _log.warning(
                "%s is of no use, replaying instead: %s", self.snapshot_path(offset), error
            )
            return False
        for row in rows:
            is_open = row.current_txn_first_offset >= 0
            if not is_open and now_ms - row.timestamp_ms >= self.expiration_ms:
                continue
            self._producers[row.producer_id] = from_row(row)
            if is_open:
                self.ongoing_txns[row.current_txn_first_offset] = row.producer_id
        return True


def _fenced(producer_id: int, producer_epoch: int, entry: ProducerEntry) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Producer {producer_id} has epoch {entry.producer_epoch} here, this one is "
        f"{producer_epoch}",
    )


def _out_of_order(header: BatchHeader, expectation: str) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence}, {expectation}",
    )
