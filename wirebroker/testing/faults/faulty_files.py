"""The files of a broker in test mode, which fail on command.

They are never synced: tests end processes, not the system, and each sync delays a start.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from wirebroker.storage.files import DataFile, Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.storage.descriptors import Volume
    from wirebroker.storage.file_cache import FileCache
    from wirebroker.storage.files import Buffer
    from wirebroker.testing.faults.fault_table import FaultTable


class _Disk:
    __slots__ = ("_faults",)

    def __init__(self, faults: FaultTable) -> None:
        self._faults = faults

    def check_room(self, path: str) -> None:
        if self._faults and self._faults.of_disk("disk_full"):
            raise OSError(errno.ENOSPC, "No space left on device (set by a test)", path)

    def check_sync(self, path: str) -> None:
        if self._faults and self._faults.of_disk("fail_fsync"):
            raise OSError(errno.EIO, "Input/output error (set by a test)", path)


class _FaultyFile(DataFile):
    __slots__ = ("_disk",)

    def __init__(self, cache: FileCache, path: str, disk: _Disk) -> None:
        super().__init__(cache, path)
        self._disk = disk

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        self._disk.check_room(self.path)
        super().write_at(position, buffers)

    def reserve(self, length: int) -> None:
        self._disk.check_room(self.path)
        super().reserve(length)

    def sync(self) -> None:
        self._disk.check_sync(self.path)
        self._synced_changes = self._changes


class FaultyFiles(Files):
    """The file system, with faults."""

    __slots__ = ("_disk",)

    def __init__(self, faults: FaultTable) -> None:
        super().__init__()
        self._disk = _Disk(faults)

    def data(self, path: str) -> DataFile:
        """See Files."""
        return _FaultyFile(self._cache, path, self._disk)

    def make_directory(self, path: str) -> None:
        """See Files."""
        self._disk.check_room(path)
        super().make_directory(path)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """See Files."""
        self._disk.check_room(path)
        if sync:
            self._disk.check_sync(path)
        super().write_file(path, content, sync=False)

    def sync_directory(self, path: str) -> None:
        """See Files."""
        self._disk.check_sync(path)

    def open_volume(self, path: str) -> Volume | None:
        """Return None: each file is synced separately and can fail."""
        del path
        return None
