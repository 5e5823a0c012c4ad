"""The snapshot files of one log: which there are, what the disk may not have, how they go.

They shorten the replay of a log's producers, so one that is missing or damaged costs time alone.
What a file holds: producer_snapshot.py. Source: Kafka's ProducerStateManager.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right, insort
from contextlib import suppress
from typing import TYPE_CHECKING

from wirebroker.storage.log.producers.producer_snapshot import (
    CorruptSnapshotError,
    SnapshotRow,
    decode_snapshot,
    encode_snapshot,
    snapshot_name,
)
from wirebroker.storage.log.segment.segment_files import DELETED_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.storage.files import Files

_log = logging.getLogger(__name__)


class ProducerSnapshots:
    """One log's snapshot files.

    Attributes:
        offsets: Of the files that exist, rising.
        last_offset: Of the one that was written or read last; nothing older is worth writing.
        unsynced: Offsets of those written since the last flush; flushed with the segments.
    """

    __slots__ = ("_directory", "_files", "last_offset", "offsets", "unsynced")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.offsets: list[int] = []
        self.unsynced: list[int] = []
        self.last_offset = 0

    def relocate(self, directory: str) -> None:
        """Go on with copies of the files in another directory, which are on the disk."""
        self._directory = directory
        self.unsynced.clear()

    def use(self, offsets: Iterable[int]) -> None:
        """Take over the files that a listing of the directory showed."""
        self.offsets = sorted(offsets)

    def write(self, offset: int, rows: Sequence[SnapshotRow]) -> None:
        """Write a file; it is among the unsynced ones until a flush takes it.

        Raises:
            OSError: The disk failed.
        """
        self._files.write_whole(self.path(offset), encode_snapshot(rows), sync=False)
        if offset not in self.offsets:
            insort(self.offsets, offset)
        self.unsynced.append(offset)
        self.last_offset = offset

    def read(self, offset: int) -> list[SnapshotRow] | None:
        """Return what a file holds; None if it is of no use.

        Raises:
            OSError: The disk failed.
        """
        try:
            return decode_snapshot(self._files.read_whole(self.path(offset)))
        except (CorruptSnapshotError, FileNotFoundError) as error:
            _log.warning("%s is of no use, replaying instead: %s", self.path(offset), error)
            return None

    def newest_first(self, end_offset: int) -> list[int]:
        """Return the offsets at or below `end_offset`, falling."""
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
        """Remove the files of offsets at or below `lowest`, or above `highest`."""
        for offset in list(self.offsets):
            if not lowest < offset <= highest:
                self.delete(offset)

    def delete_strays(self, segment_base_offsets: set[int]) -> None:
        """Keep those at segments' base offsets, and the newest if it is above them all."""
        highest = max(segment_base_offsets, default=-1)
        strays = [offset for offset in self.offsets if offset not in segment_base_offsets]
        for offset in strays:
            if offset != strays[-1] or offset < highest:
                self.delete(offset)

    def set_aside(self, offset: int) -> None:
        """Rename a file to `.deleted`; it is removed with its segment's files.

        Raises:
            OSError: The disk failed.
        """
        path = self.path(offset)
        if self._forget(offset):
            with suppress(FileNotFoundError):
                self._files.rename(path, path + DELETED_SUFFIX)

    @property
    def unsynced_paths(self) -> list[str]:
        """What a flush is to sync."""
        return [self.path(offset) for offset in self.unsynced]

    def take_unsynced_paths(self) -> list[str]:
        """Return what a flush is to sync, and leave it to that."""
        paths = self.unsynced_paths
        self.unsynced.clear()
        return paths

    def path(self, offset: int) -> str:
        """Return the path of the file at `offset`."""
        return f"{self._directory}/{snapshot_name(offset)}"

    def check(self, end_offset: int) -> None:
        """Assert that they rise, and none is above `end_offset`."""
        assert self.offsets == sorted(set(self.offsets)), self.offsets
        assert not self.offsets or self.offsets[-1] <= end_offset, (self.offsets, end_offset)

    def _forget(self, offset: int) -> bool:
        """Take a file off the lists; return whether it was there."""
        if offset in self.unsynced:
            self.unsynced.remove(offset)
        index = bisect_left(self.offsets, offset)
        is_there = index < len(self.offsets) and self.offsets[index] == offset
        if is_there:
            del self.offsets[index]
        return is_there
