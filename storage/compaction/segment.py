"""The segment that compaction writes, in files whose names end in `.cleaned`.

They are synced here, so that the swap (segment_swap.py) only renames them.

Source: Kafka's LogSegment.append and onBecomeInactiveSegment, UnifiedLog.createNewCleanedSegment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import read_batch_header
from wirebroker.storage.log.index.index_tail import empty_tail, index_batches
from wirebroker.storage.log.index.time_index import TIME_ENTRY
from wirebroker.storage.log.index.transaction_index import TransactionIndex
from wirebroker.storage.log.segment.segment_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_path,
)
from wirebroker.storage.log.segment.segment_recovery import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.storage.files import Buffer, DataFile, Files
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction

CLEANED_SUFFIX: Final = ".cleaned"

# 1 MiB: larger writes gain nothing.
_WRITE_BYTES: Final = 1 << 20
# 16 MiB: longer syncs delay all other users of the disk.
_SYNC_BYTES: Final = 16 << 20


class CleanedSegment:
    """A new segment: batches in offset order and their indexes."""

    __slots__ = (
        "_directory",
        "_files",
        "_index_interval_bytes",
        "_last_offset",
        "_log",
        "_offset_entries",
        "_pending",
        "_synced_size",
        "_tail",
        "_time_entries",
        "_written_size",
        "base_offset",
        "size",
    )

    # Invariants: _synced_size <= _written_size <= size; offsets ascend.

    def __init__(
        self, files: Files, directory: str, base_offset: int, *, index_interval_bytes: int
    ) -> None:
        self._files = files
        self._directory = directory
        self.base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._last_offset = base_offset - 1
        for suffix in SEGMENT_SUFFIXES:
            files.unlink(self._path(suffix))
        self._log = self._file(LOG_SUFFIX)
        self._log.create()
        self.size = self._written_size = self._synced_size = 0
        self._pending: list[Buffer] = []
        self._tail = empty_tail(base_offset)
        self._offset_entries, self._time_entries = bytearray(), bytearray()

    def append(self, batch: Buffer) -> None:
        """Append a batch; the buffer must not change until it is written.

        Raises:
            KafkaError: CORRUPT_MESSAGE: its offset is too far from the base offset.
            OSError: The write failed.
        """
        header = read_batch_header(batch)
        if not 0 <= header.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"offset {header.last_offset} is too far from the base offset {self.base_offset}",
            )
        assert header.base_offset > self._last_offset, "offsets ascend"
        self._last_offset = header.last_offset
        self._tail, self.size, offset_entry, time_entry = index_batches(
            self._tail,
            (header,),
            position=self.size,
            base_offset=self.base_offset,
            index_interval_bytes=self._index_interval_bytes,
        )
        self._offset_entries += offset_entry
        self._time_entries += time_entry
        self._pending.append(batch)
        if self.size - self._written_size >= _WRITE_BYTES:
            self._write()

    def finish(self, aborted: Sequence[AbortedTransaction], *, modified_ms: int) -> None:
        """Write the remaining batches and the indexes, and sync everything.

        The log file gets the modification time `modified_ms`, for retention of records without
        timestamps.

        Raises:
            OSError: The disk failed.
        """
        self._write()
        tail = self._tail
        if tail.max_timestamp > tail.indexed_timestamp:
            relative = tail.offset_of_max_timestamp - self.base_offset
            self._time_entries += TIME_ENTRY.pack(tail.max_timestamp, relative)
        written = [self._log]
        for suffix, entries in (
            (INDEX_SUFFIX, self._offset_entries),
            (TIME_INDEX_SUFFIX, self._time_entries),
        ):
            index = self._file(suffix)
            index.create()
            index.write_at(0, entries)
            written.append(index)
        if aborted:
            transactions = TransactionIndex(self._file(TXN_INDEX_SUFFIX))
            transactions.write_entries(aborted)
            written.append(transactions.file)
        for file in written:
            file.sync()
            file.close()
        self._files.set_modified_ms(self._path(LOG_SUFFIX), modified_ms)
        self._files.sync_directory(self._directory)

    def _write(self) -> None:
        if self._pending:
            self._log.write_at(self._written_size, self._pending)
            self._pending = []
            self._written_size = self.size
        if self._written_size - self._synced_size >= _SYNC_BYTES:
            self._log.sync()
            self._synced_size = self._written_size

    def _path(self, suffix: str) -> str:
        return segment_path(self._directory, self.base_offset, suffix + CLEANED_SUFFIX)

    def _file(self, suffix: str) -> DataFile:
        return self._files.data(self._path(suffix))
