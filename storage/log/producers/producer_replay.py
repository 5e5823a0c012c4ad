"""The effect of a stored batch on its producer's state, after appends and during load.

Outside of transactions only a producer's last batches matter. A replay therefore collects them
(`recent`), and applies them before a transactional batch of the producer or at the end.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import BatchHeader, iterate_records, read_batch_header
from wirebroker.codecs.records.control import (
    MAX_CONTROL_BYTES,
    EndTransactionMarker,
    decode_control_record,
)
from wirebroker.codecs.records.layout import (
    CONTROL_FLAG,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    OVERHEAD_BYTES,
    TRANSACTIONAL_FLAG,
)
from wirebroker.storage.log.index.transaction_index import AbortedTransaction
from wirebroker.storage.log.producers.producer_entry import BATCHES_KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.primitives import Buffer
    from wirebroker.storage.files import DataFile
    from wirebroker.storage.log.producers.producer_state import ProducerState
    from wirebroker.storage.log.producers.undecided_transactions import CompletedTransaction

# Producer id -> fields of its latest headers.
Recent: TypeAlias = "dict[int, deque[tuple[int, ...]]]"
# Batches with these flags are applied in order.
SPECIAL_BATCH_FLAGS: Final = CONTROL_FLAG | TRANSACTIONAL_FLAG
# Small batches are read in bulk; of large ones only the headers.
_WALK_BYTES: Final = 256 * 1024
_HOP_BYTES: Final = 4 * 1024


def apply_batch(
    state: ProducerState, header: BatchHeader, batch: Buffer
) -> CompletedTransaction | None:
    """Apply a stored batch to the state; return the transaction that it ends, if any.

    Raises:
        KafkaError: INVALID_RECORD or CORRUPT_MESSAGE: a marker cannot be read.
    """
    completed = None
    if header.producer_id >= 0:
        if header.is_control:
            completed = _apply_marker(state, header, batch)
        else:
            state.append(header)
    state.end_offset = header.last_offset + 1
    return completed


class ProducerReplay:
    """A bulk replay of a log's batches; the code that scans the log fills `recent`."""

    __slots__ = ("_from_offset", "_state", "recent")

    def __init__(self, state: ProducerState, *, from_offset: int = 0) -> None:
        self._state = state
        self._from_offset = from_offset  # records below it are deleted
        self.recent: Recent = {}

    def apply(self, header: BatchHeader, batch: Buffer) -> CompletedTransaction | None:
        """Apply a batch that does not go through `recent`."""
        for fields in self.recent.pop(header.producer_id, ()):
            self._append(fields)
        if header.last_offset < self._from_offset:
            return None
        return apply_batch(self._state, header, batch)

    def finish(self, end_offset: int) -> None:
        """Apply the remaining batches."""
        for recent_batches in self.recent.values():
            for fields in recent_batches:
                self._append(fields)
        self.recent.clear()
        self._state.end_offset = end_offset

    def walk(self, file: DataFile, position: int, file_end: int, end_offset: int) -> None:
        """Apply the batches from `position` on, up to the one that ends just below `end_offset`.

        Raises:
            KafkaError: As read_batch_header and apply_batch.
        """
        unpack = HEADER.unpack_from
        chunk, at, chunk_bytes = b"", 0, _WALK_BYTES
        recent = self.recent
        while position < file_end:
            if at + HEADER_BYTES > len(chunk):
                chunk = file.read_at(position, min(chunk_bytes, file_end - position))
                at = 0
                if len(chunk) < HEADER_BYTES:
                    read_batch_header(chunk)  # raises the exact error
            fields = unpack(chunk, at)
            if fields[0] >= end_offset:
                return
            size = fields[1] + OVERHEAD_BYTES
            if fields[3] != MAGIC or size < HEADER_BYTES or size > file_end - position:
                read_batch_header(chunk, at)
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at {position} is cut off")
            producer_id = fields[9]
            if producer_id >= 0:
                if fields[5] & SPECIAL_BATCH_FLAGS:
                    header = BatchHeader._make(fields)
                    batch = file.read_at(position, size) if header.is_control else b""
                    self.apply(header, batch)
                else:
                    recent_batches = recent.get(producer_id)
                    if recent_batches is None:
                        recent_batches = recent[producer_id] = deque(maxlen=BATCHES_KEPT)
                    recent_batches.append(fields)
            if fields[0] + fields[6] + 1 >= end_offset:
                return  # before recovery, other bytes may follow
            position += size
            at += size
            chunk_bytes = _WALK_BYTES if size < _WALK_BYTES // 4 else _HOP_BYTES

    def _append(self, fields: tuple[int, ...]) -> None:
        header = BatchHeader._make(fields)
        if header.last_offset >= self._from_offset:
            self._state.append(header)


def find_aborts(
    state: ProducerState, headers: Sequence[BatchHeader], batches: memoryview
) -> list[AbortedTransaction]:
    """Return the transactions that abort markers among batches will end; changes nothing.

    Raises:
        KafkaError: INVALID_RECORD or CORRUPT_MESSAGE: a marker cannot be read.
    """
    aborted: list[AbortedTransaction] = []
    if not any(header.is_control for header in headers):
        return aborted
    first_offsets = {
        producer_id: first for first, producer_id in state.transactions.ongoing.items()
    }
    position = 0
    for header in headers:
        producer_id = header.producer_id
        if not header.is_control:
            if header.is_transactional and producer_id >= 0:
                first_offsets.setdefault(producer_id, header.base_offset)
        elif producer_id >= 0:
            batch = batches[position : position + header.size]
            marker = _read_marker(header, batch)
            if marker is not None and producer_id in first_offsets:
                first = first_offsets.pop(producer_id)
                if not marker.is_commit:
                    stable = min(first_offsets.values(), default=header.base_offset + 1)
                    aborted.append(
                        AbortedTransaction(producer_id, first, header.base_offset, stable)
                    )
        position += header.size
    return aborted


def _apply_marker(
    state: ProducerState, header: BatchHeader, batch: Buffer
) -> CompletedTransaction | None:
    marker = _read_marker(header, batch)
    if marker is None:
        return None
    return state.end_transaction(
        header,
        is_abort=not marker.is_commit,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp_ms=marker.timestamp_ms,
    )


class _Marker(NamedTuple):
    is_commit: bool
    coordinator_epoch: int
    timestamp_ms: int


def _read_marker(header: BatchHeader, batch: Buffer) -> _Marker | None:
    # A marker without records was emptied by compaction: its transaction is deleted.
    for record in iterate_records(batch, header, max_bytes=MAX_CONTROL_BYTES):
        marker = decode_control_record(record.key, record.value)
        if isinstance(marker, EndTransactionMarker):
            return _Marker(marker.is_commit, marker.coordinator_epoch, record.timestamp)
    return None
