"""The files of one segment as files: their names, creation, renames, removal.

    <base offset, 20 digits>.log         batches end to end; nothing between or behind them
                            .index       offsets -> positions     (offset_index.py)
                            .timeindex   timestamps -> offsets    (time_index.py)
                            .txnindex    aborted transactions     (transaction_index.py)

The index objects are made when first asked for: 10,000 segments that nobody uses cost little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.storage.file_names import offset_before
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
DELETED_SUFFIX = ".deleted"
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
    """What is done to a segment's files without knowing what they hold.

    Attributes:
        base_offset: The segment's name.
        log: The file of batches.
    """

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
        """The index from offsets to positions."""
        if self._offset_index is None:
            path = segment_path(self._directory, self.base_offset, INDEX_SUFFIX)
            self._offset_index = OffsetIndex(self._files.data(path), self.base_offset)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The index from timestamps to offsets."""
        if self._time_index is None:
            path = segment_path(self._directory, self.base_offset, TIME_INDEX_SUFFIX)
            self._time_index = TimeIndex(self._files.data(path), self.base_offset)
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex:
        """The aborted transactions; its file exists from the first one on."""
        if self._transaction_index is None:
            path = segment_path(self._directory, self.base_offset, TXN_INDEX_SUFFIX)
            self._transaction_index = TransactionIndex(self._files.data(path))
        return self._transaction_index

    def replace_aborted(self, entries: Sequence[AbortedTransaction]) -> None:
        """Make these the aborted transactions, if others are there; on the disk when this returns.

        Nothing tells that entries below the recovery point are missing. So they are replaced as a
        whole and synced: neither a kill nor a power loss in the middle leaves fewer.

        Raises:
            OSError: The disk failed.
        """
        file = self.transaction_index.file
        content = encode_entries(entries)
        if (file.read_at(0, file.size()) if file.size() else b"") == content:
            return
        if content:
            file.close()
            self._files.write_whole(file.path, content)
        else:
            file.unlink()
        self._transaction_index = None  # it knows the old file

    def is_index_full(self, max_index_bytes: int) -> bool:
        """Return whether an index has reached segment.index.bytes: time to roll."""
        return self.offset_index.is_full(max_index_bytes) or self.time_index.is_full(
            max_index_bytes
        )

    def sanity_check(self) -> str | None:
        """Return why the indexes must be rebuilt before use (by `Segment.recover`), or None."""
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
        """Wait until log and indexes are on the disk. Blocks: run it in a thread."""
        for file in self._known_files():
            # An fdatasync of a file without news costs 40 us; most appends change no index.
            if file.is_dirty and self._files.exists(file.path):
                file.sync()

    def close_files(self) -> None:
        """Let go of the files as they are; they open again when needed."""
        for file in self._known_files():
            file.close()

    def let_go(self) -> None:
        """Leave the files to whoever removes their directory; they close with their last user."""
        for file in self._known_files():
            file.let_go()

    def relocate(self, directory: str) -> None:
        """Follow a rename of the directory; open files stay open."""
        self._directory = directory
        for file in self._known_files():
            file.path = f"{directory}/{file.path.rpartition('/')[2]}"

    def look_under(self, suffix: str) -> None:
        """Take the files to have names with a suffix; nothing is renamed."""
        for file in self.all_files():
            file.path += suffix

    def mark_deleted(self, suffix: str = DELETED_SUFFIX) -> None:
        """Rename the files to `….deleted`: a restart removes what a crash leaves of them."""
        for file in self.all_files():
            if self._files.exists(file.path):
                file.rename(file.path + suffix)
            else:
                file.path += suffix  # its name may be another segment's by the time of `remove`

    def delete(self) -> None:
        """Remove the files, renamed or not; they may be created anew."""
        for file in self.all_files():
            file.unlink()

    def remove(self) -> None:
        """Remove the files for good. Slices in flight can be sent to their end.

        A snapshot of the producers that was set aside together with the segment goes as well.
        """
        for file in self.all_files():
            file.remove()
        snapshot = f"{self._directory}/{snapshot_name(self.base_offset)}"
        self._files.unlink(snapshot + DELETED_SUFFIX)

    def _known_files(self) -> list[DataFile]:
        indexes = (self._offset_index, self._time_index, self._transaction_index)
        return [self.log, *(index.file for index in indexes if index is not None)]

    def all_files(self) -> list[DataFile]:
        """Return the log and its indexes, of which not every one need exist."""
        indexes = (self.offset_index, self.time_index, self.transaction_index)
        return [self.log, *(index.file for index in indexes)]
