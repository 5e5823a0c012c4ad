"""The files of one segment; index objects are created at first use, as most segments are idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.storage.file_names import DELETED_SUFFIX, offset_before
from wirebroker.storage.log.index.offset_index import OffsetIndex
from wirebroker.storage.log.index.time_index import TimeIndex
from wirebroker.storage.log.index.transaction_index import TransactionIndex, encode_entries
from wirebroker.storage.log.producers.producer_snapshot import snapshot_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.storage.files import DataFile, Files
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SWAP_SUFFIX = ".swap"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """Return the path of one of a segment's files."""
    return f"{directory}/{base_offset:020d}{suffix}"


def segment_base_offsets(names: Iterable[str]) -> list[int]:
    """Return the base offsets of the segments among a directory's file names, ascending."""
    offsets = (offset_before(name, LOG_SUFFIX) for name in names)
    return sorted(offset for offset in offsets if offset is not None)


class SegmentFiles:
    """The file operations of a segment."""

    __slots__ = (
        "_directory",
        "_files",
        "_offset_index",
        "_time_index",
        "_transaction_index",
        "base_offset",
        "log",
    )

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        self._files = files
        self._directory = directory
        self.base_offset = base_offset
        self.log: DataFile = files.data(segment_path(directory, base_offset, LOG_SUFFIX))
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transaction_index: TransactionIndex | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.log.path!r})"

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index."""
        if self._offset_index is None:
            path = segment_path(self._directory, self.base_offset, INDEX_SUFFIX)
            self._offset_index = OffsetIndex(self._files.data(path), self.base_offset)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The time index."""
        if self._time_index is None:
            path = segment_path(self._directory, self.base_offset, TIME_INDEX_SUFFIX)
            self._time_index = TimeIndex(self._files.data(path), self.base_offset)
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex:
        """The aborted transactions."""
        if self._transaction_index is None:
            path = segment_path(self._directory, self.base_offset, TXN_INDEX_SUFFIX)
            self._transaction_index = TransactionIndex(self._files.data(path))
        return self._transaction_index

    def replace_aborted(self, entries: Sequence[AbortedTransaction]) -> None:
        """Replace the aborted transactions, if they differ, and sync them.

        The file is replaced as a whole, because missing entries would go unnoticed.
        """
        file = self.transaction_index.file
        content = encode_entries(entries)
        if (file.read_at(0, file.size()) if file.size() else b"") == content:
            return
        if content:
            file.close()
            self._files.write_file(file.path, content)
        else:
            file.unlink()
        self._transaction_index = None  # it refers to the old file

    def is_index_full(self, max_index_bytes: int) -> bool:
        """Return whether an index has reached segment.index.bytes."""
        return self.offset_index.is_full(max_index_bytes) or self.time_index.is_full(
            max_index_bytes
        )

    def sanity_check(self) -> str | None:
        """Return why the indexes must be rebuilt, or None."""
        log_length = self.log.size()
        for index in (self.offset_index, self.time_index):
            if log_length and not self._files.exists(index.file.path):
                return f"{index.file.path} is missing"
            if problem := index.sanity_check():
                return f"{index.file.path} is corrupt: {problem}"
        if self.offset_index.last_entry().position >= max(log_length, 1):
            return f"{self.offset_index.file.path} points beyond the end of the log"
        return None

    def sync(self) -> None:
        """Sync log and indexes. Blocks."""
        for file in self._known_files():
            # An unneeded fdatasync costs 40 us.
            if file.is_dirty and self._files.exists(file.path):
                file.sync()

    def close_files(self) -> None:
        """Close the files; they open again when needed."""
        for file in self._known_files():
            file.close()

    def free_gradually(self) -> None:
        """See DataFile.free_gradually."""
        for file in self._known_files():
            file.free_gradually()

    def relocate(self, directory: str) -> None:
        """Follow a rename of the directory; open files stay open."""
        self._directory = directory
        for file in self._known_files():
            file.path = f"{directory}/{file.path.rpartition('/')[2]}"

    def use_directory(self, suffix: str) -> None:
        """Append a suffix to the paths without renaming the files."""
        for file in self.all_files():
            file.path += suffix

    def mark_deleted(self, suffix: str = DELETED_SUFFIX) -> None:
        """Rename the files to `….deleted`."""
        for file in self.all_files():
            if self._files.exists(file.path):
                file.rename(file.path + suffix)
            else:
                file.path += suffix  # otherwise `remove` could hit another segment's file

    def delete(self) -> None:
        """Remove the files, which may be created again."""
        for file in self.all_files():
            file.unlink()

    def remove(self) -> None:
        """Remove the files permanently; slices in flight can still be sent.

        A producer snapshot that was set aside with the segment is removed as well.
        """
        for file in self.all_files():
            file.remove()
        snapshot = f"{self._directory}/{snapshot_name(self.base_offset)}"
        self._files.unlink(snapshot + DELETED_SUFFIX)

    def _known_files(self) -> list[DataFile]:
        indexes = (self._offset_index, self._time_index, self._transaction_index)
        return [self.log, *(index.file for index in indexes if index is not None)]

    def all_files(self) -> list[DataFile]:
        """Return the log and its indexes, existing or not."""
        indexes = (self.offset_index, self.time_index, self.transaction_index)
        return [self.log, *(index.file for index in indexes)]
