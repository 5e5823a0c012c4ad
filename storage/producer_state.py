"""What a partition knows of its idempotent and transactional producers (KIP-98, KIP-360).

Per producer id: the epoch, the last five batches (to answer a retry with the offsets of the first
try), and the first offset of an open transaction. It is a function of the log: snapshots at offsets
(producer_snapshot.py) only shorten the replay.

Laws:
- A batch of sequence s is accepted if it follows the last one (after 2^31 - 1 comes 0). A producer
  that is not known (never seen, expired, its records deleted) may begin anywhere; a new epoch
  begins at 0; a lower epoch is fenced.
- check_append() changes nothing; append() takes what was written, now or in another life.
- end_offset is the offset up to which the log is contained; snapshots rise and none is above it.

The newest snapshot is read at first use: 10,000 partitions come back from a clean stop unread.
Source: Kafka's ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.producer_snapshot import (
    CorruptSnapshotError,
    SnapshotRow,
    decode_snapshot,
    encode_snapshot,
    snapshot_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.codecs.record_batch import BatchHeader
    from wirebroker.storage.files import Files

_log = logging.getLogger(__name__)

NO_PRODUCER_ID: Final = -1
_NO_EPOCH: Final = -1
_NO_SEQUENCE: Final = -1
_MAX_SEQUENCE: Final = 2**31 - 1
# As many requests as an idempotent producer has in flight (max.in.flight.requests.per.connection).
BATCHES_KEPT: Final = 5


class ProducedBatch(NamedTuple):
    """Where a producer's batch went, for the answer to its retry."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_offset(self) -> int:
        """Return the offset of its first record."""
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        """Return the sequence of its first record."""
        sequence = self.last_sequence - self.offset_delta
        return sequence if sequence >= 0 else sequence + _MAX_SEQUENCE + 1


class ProducerEntry:
    """One producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp_ms",
        "producer_epoch",
    )

    def __init__(self, producer_epoch: int = _NO_EPOCH) -> None:
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = -1
        self.last_timestamp_ms = -1
        self.current_txn_first_offset = -1  # -1: no transaction is open
        self.batches: deque[ProducedBatch] = deque(maxlen=BATCHES_KEPT)  # oldest first, one epoch's

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last record, -1 when no batch of this epoch is known."""
        return self.batches[-1].last_sequence if self.batches else _NO_SEQUENCE

    def begin_epoch(self, producer_epoch: int) -> None:
        """Forget the batches of another epoch."""
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


class CompletedTransaction(NamedTuple):
    """A transaction whose marker was met: what the transaction index is written from."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerState:
    """The producers of one partition."""

    __slots__ = (
        "_completed",
        "_directory",
        "_files",
        "_last_snapshot_offset",
        "_opened_ms",
        "_producers",
        "_rebuild",
        "_unread_snapshot",
        "end_offset",
        "expiration_ms",
        "ongoing_txns",
        "snapshots",
        "unsynced_snapshots",
    )

    def __init__(self, files: Files, directory: str, *, expiration_ms: int) -> None:
        self._files = files
        self._directory = directory
        self._producers: dict[int, ProducerEntry] = {}
        # First offset -> producer id. The lowest key bounds what read_committed may see.
        self.ongoing_txns: dict[int, int] = {}
        # First offset -> offset of the marker, until the high watermark has passed that.
        self._completed: dict[int, int] = {}
        # Offsets of the snapshot files that exist, rising.
        self.snapshots: list[int] = []
        # Written since the last flush; flushed with the segments.
        self.unsynced_snapshots: list[int] = []
        self.end_offset = 0
        self._last_snapshot_offset = 0
        self.expiration_ms = expiration_ms
        self._unread_snapshot: int | None = None
        self._opened_ms = 0
        self._rebuild: Callable[[], None] | None = None

    @property
    def producers(self) -> dict[int, ProducerEntry]:
        """Return the known producers by id; not to be changed."""
        if self._unread_snapshot is not None:
            self._read_now()
        return self._producers

    # -- the append path -------------------------------------------------------------------

    def check_append(
        self, header: BatchHeader, *, is_verified: bool = False
    ) -> ProducedBatch | None:
        """Check a client's batch against what its producer wrote before; changes nothing.

        Args:
            header: A batch with a producer id.
            is_verified: The transaction coordinator knows of the transaction (KIP-890). One that
                it doesn't know could never end, and would hide all that follows.

        Returns:
            The batch already written with the same sequences, if this is a retry; else None.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        if self._unread_snapshot is not None:
            self._read_now()
        entry = self._producers.get(header.producer_id)
        if entry is None:
            _check_transaction(header, None, is_verified=is_verified)
            return None
        base_sequence = header.base_sequence
        epoch = header.producer_epoch
        batches = entry.batches
        if epoch == entry.producer_epoch:
            last_sequence = batches[-1].last_sequence if batches else _NO_SEQUENCE
            if base_sequence != last_sequence + 1 and (
                base_sequence or last_sequence != _MAX_SEQUENCE
            ):
                duplicate = _find_duplicate(batches, header)
                if duplicate is None:
                    raise _out_of_order(header, f"the last one was {last_sequence}")
                return duplicate
        elif epoch < entry.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {header.producer_id} has epoch {entry.producer_epoch} here, "
                f"the batch has {epoch}",
            )
        elif base_sequence != 0 and entry.producer_epoch != _NO_EPOCH:
            raise _out_of_order(header, f"epoch {epoch} is new and begins at 0")
        _check_transaction(header, entry, is_verified=is_verified)
        return None

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
        if last_sequence > _MAX_SEQUENCE:
            last_sequence -= _MAX_SEQUENCE + 1
        timestamp_ms = header.max_timestamp
        last_offset = header.base_offset + delta
        entry.batches.append(ProducedBatch(last_sequence, last_offset, delta, timestamp_ms))
        entry.last_timestamp_ms = timestamp_ms
        self.end_offset = last_offset + 1
        if header.is_transactional and entry.current_txn_first_offset < 0:
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

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of a transaction that isn't decided below the high watermark."""
        if self._unread_snapshot is not None:
            self._read_now()
        if not self.ongoing_txns and not self._completed:
            return None
        done = [first for first, last in self._completed.items() if last < high_watermark]
        for first in done:
            del self._completed[first]
        return min((*self.ongoing_txns, *self._completed), default=None)

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers idle for producer.id.expiration.ms; an open transaction holds them."""
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
        rows = [_to_row(producer_id, entry) for producer_id, entry in list(self.producers.items())]
        self._files.write_whole(self.snapshot_path(offset), encode_snapshot(rows), sync=False)
        if offset not in self.snapshots:
            insort(self.snapshots, offset)
        self.unsynced_snapshots.append(offset)
        self._last_snapshot_offset = offset
        return True

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
        self._last_snapshot_offset = end_offset
        self._rebuild = rebuild
        self._opened_ms = now_ms

    def reload(self, *, log_start_offset: int, end_offset: int, now_ms: int) -> None:
        """Go back to the newest usable snapshot at or below `end_offset`.

        Snapshots outside (log_start_offset, end_offset] are deleted, and unusable ones. Afterwards
        `self.end_offset` is where the replay begins: the snapshot's offset or the log's start.
        """
        for offset in list(self.snapshots):
            if offset > end_offset or offset <= log_start_offset:
                self.delete_snapshot(offset)
        while self.snapshots:
            offset = self.snapshots[-1]
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
        self._unread_snapshot = None
        self.end_offset = end_offset
        self._last_snapshot_offset = 0

    def delete_snapshot(self, offset: int) -> None:
        """Remove a snapshot file."""
        index = bisect_left(self.snapshots, offset)
        if index < len(self.snapshots) and self.snapshots[index] == offset:
            del self.snapshots[index]
            self._files.unlink(self.snapshot_path(offset))
        if offset in self.unsynced_snapshots:
            self.unsynced_snapshots.remove(offset)

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
        return sorted(_to_row(producer_id, entry) for producer_id, entry in self.producers.items())

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

    def _read_now(self) -> None:
        offset = self._unread_snapshot
        assert offset is not None
        self._unread_snapshot = None
        if not self._read_snapshot(offset, self._opened_ms):
            assert self._rebuild is not None
            self._rebuild()

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
            self._producers[row.producer_id] = _from_row(row)
            if is_open:
                self.ongoing_txns[row.current_txn_first_offset] = row.producer_id
        return True


def _check_transaction(
    header: BatchHeader, entry: ProducerEntry | None, *, is_verified: bool
) -> None:
    is_open = entry is not None and entry.current_txn_first_offset >= 0
    if header.is_transactional:
        if not is_open and not is_verified:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has no transaction with this partition",
            )
    elif is_open:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Producer {header.producer_id} has an open transaction, the batch is not in it",
        )


def _find_duplicate(batches: deque[ProducedBatch], header: BatchHeader) -> ProducedBatch | None:
    delta = header.last_offset_delta
    for batch in batches:
        if batch.offset_delta == delta and batch.base_sequence == header.base_sequence:
            return batch
    return None


def _out_of_order(header: BatchHeader, expectation: str) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence}, {expectation}",
    )


def _to_row(producer_id: int, entry: ProducerEntry) -> SnapshotRow:
    last = entry.batches[-1] if entry.batches else ProducedBatch(_NO_SEQUENCE, -1, 0, -1)
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


def _from_row(row: SnapshotRow) -> ProducerEntry:
    entry = ProducerEntry(row.producer_epoch)
    entry.coordinator_epoch = row.coordinator_epoch
    entry.last_timestamp_ms = row.timestamp_ms
    entry.current_txn_first_offset = row.current_txn_first_offset
    if row.last_offset >= 0:
        entry.batches.append(
            ProducedBatch(row.last_sequence, row.last_offset, row.offset_delta, row.timestamp_ms)
        )
    return entry
