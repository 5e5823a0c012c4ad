"""The producer snapshot files of one log; a missing or damaged one only costs time."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right, insort
from contextlib import suppress
from typing import TYPE_CHECKING

from wirebroker.storage.file_names import DELETED_SUFFIX
from wirebroker.storage.log.producers.producer_snapshot import (
    CorruptSnapshotError,
    SnapshotRow,
    decode_snapshot,
    encode_snapshot,
    snapshot_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.storage.files import Files

_log = logging.getLogger(__name__)


class ProducerSnapshots:
    """One log's snapshot files.

    Attributes:
        offsets: Of the existing files, ascending.
        last_offset: Of the last file written or read; older ones need not be written.
        unsynced: Offsets of the files written since the last flush.
    """

    __slots__ = ("_directory", "_files", "last_offset", "offsets", "unsynced")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.offsets: list[int] = []
        self.unsynced: list[int] = []
        self.last_offset = 0

    def relocate(self, directory: str) -> None:
        """Switch to synced copies in another directory."""
        self._directory = directory
        self.unsynced.clear()

    def use(self, offsets: Iterable[int]) -> None:
        """Set the offsets of the existing files."""
        self.offsets = sorted(offsets)

    def write(self, offset: int, rows: Sequence[SnapshotRow]) -> None:
        """Write a file, which stays unsynced until a flush."""
        self._files.write_file(self.path(offset), encode_snapshot(rows), sync=False)
        if offset not in self.offsets:
            insort(self.offsets, offset)
        self.unsynced.append(offset)
        self.last_offset = offset

    def read(self, offset: int) -> list[SnapshotRow] | None:
        """Return the rows of a file; None if it is unusable."""
        try:
            return decode_snapshot(self._files.read_file(self.path(offset)))
        except (CorruptSnapshotError, FileNotFoundError) as error:
            _log.warning("%s is unusable, replaying the log instead: %s", self.path(offset), error)
            return None

    def newest_first(self, end_offset: int) -> list[int]:
        """Return the offsets at or below `end_offset`, descending."""
        return self.offsets[: bisect_right(self.offsets, end_offset)][::-1]

    def delete(self, offset: int) -> None:
        """Remove a file, if it is known."""
        if self._forget(offset):
            self._files.unlink(self.path(offset))

    def delete_all(self) -> None:
        """Remove all files."""
        for offset in list(self.offsets):
            self.delete(offset)

    def delete_outside(self, lowest: int, highest: int) -> None:
        """Remove the files at or below `lowest`, and above `highest`."""
        for offset in list(self.offsets):
            if not lowest < offset <= highest:
                self.delete(offset)

    def delete_strays(self, segment_base_offsets: set[int]) -> None:
        """Keep the files at segments' base offsets, and a newest one above them."""
        highest = max(segment_base_offsets, default=-1)
        strays = [offset for offset in self.offsets if offset not in segment_base_offsets]
        for offset in strays:
            if offset != strays[-1] or offset < highest:
                self.delete(offset)

    def set_aside(self, offset: int) -> None:
        """Rename a file to `.deleted`; it is removed with its segment's files."""
        path = self.path(offset)
        if self._forget(offset):
            with suppress(FileNotFoundError):
                self._files.rename(path, path + DELETED_SUFFIX)

    @property
    def unsynced_paths(self) -> list[str]:
        """The paths for a flush to sync."""
        return [self.path(offset) for offset in self.unsynced]

    def take_unsynced_paths(self) -> list[str]:
        """Return `unsynced_paths` and clear the list."""
        paths = self.unsynced_paths
        self.unsynced.clear()
        return paths

    def path(self, offset: int) -> str:
        """Return a file's path."""
        return f"{self._directory}/{snapshot_name(offset)}"

    def check(self, end_offset: int) -> None:
        """Assert the order and bound of the offsets."""
        assert self.offsets == sorted(set(self.offsets)), self.offsets
        assert not self.offsets or self.offsets[-1] <= end_offset, (self.offsets, end_offset)

    def _forget(self, offset: int) -> bool:
        if offset in self.unsynced:
            self.unsynced.remove(offset)
        index = bisect_left(self.offsets, offset)
        is_there = index < len(self.offsets) and self.offsets[index] == offset
        if is_there:
            del self.offsets[index]
        return is_there
