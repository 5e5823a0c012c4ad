"""A file system that fails on command or is full."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from wirebroker.storage.files import DataFile, Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.storage.files import Buffer

# Calls that need space.
_CHANGES = ("write", "create")


class FailingFiles(Files):
    """A file system with injected errors.

    Attributes:
        broken: Kinds of failing calls ("write", "sync", "read", "send", "create", "rename") by path
            prefix.
        error_number: The errno of failures.
        changes: The number of calls so far that need space.
        refused: How many of them found none.
    """

    __slots__ = ("_full_from", "_left", "broken", "changes", "error_number", "refused")

    def __init__(self, *, max_open_files: int = 256) -> None:
        super().__init__(max_open_files=max_open_files)
        self.broken: dict[str, set[str]] = {}
        self.error_number = errno.EIO
        self.changes = 0
        self.refused = 0
        # The first change without space.
        self._full_from: int | None = None
        # Remaining failures by prefix; without an entry unlimited.
        self._left: dict[str, int] = {}

    def fail(self, prefix: object, *kinds: str, times: int | None = None) -> None:
        """Let these calls fail below `prefix`, always or a limited number of times."""
        self.broken.setdefault(str(prefix), set()).update(kinds)
        if times is not None:
            self._left[str(prefix)] = times

    def fill(self, *, after_changes: int = 0) -> None:
        """Run out of space, now or after a number of further changes."""
        self._full_from = self.changes + after_changes
        self.refused = 0

    def free(self) -> None:
        self._full_from = None

    def check(self, kind: str, path: str) -> None:
        if kind in _CHANGES:
            self.changes += 1
            if self._full_from is not None and self.changes > self._full_from:
                self.refused += 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        for prefix, kinds in self.broken.items():
            if kind in kinds and path.startswith(prefix) and self._left.get(prefix) != 0:
                if prefix in self._left:
                    self._left[prefix] -= 1
                raise OSError(self.error_number, os.strerror(self.error_number), path)

    def data(self, path: str) -> DataFile:
        return _FailingFile(self, path)

    def make_directory(self, path: str) -> None:
        self.check("create", path)
        super().make_directory(path)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        self.check("write", path)
        super().write_file(path, content, sync=sync)

    def sync_directory(self, path: str) -> None:
        self.check("sync", path)
        super().sync_directory(path)

    def open_volume(self, path: str) -> None:
        """Sync each file by itself."""


class _FailingFile(DataFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: FailingFiles, path: str) -> None:
        super().__init__(disk._cache, path)
        self._disk = disk

    def create(self) -> None:
        if not self._disk.exists(self.path):
            self._disk.check("create", self.path)
        super().create()

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        self._disk.check("write", self.path)
        super().write_at(position, buffers)

    def read_at(self, position: int, length: int) -> bytes:
        self._disk.check("read", self.path)
        return super().read_at(position, length)

    def is_resident(self, position: int, length: int = 1) -> bool:
        self._disk.check("read", self.path)
        return super().is_resident(position, length)

    def read_cached(self, position: int, memory: memoryview) -> int:
        self._disk.check("read", self.path)
        self._disk.check("send", self.path)
        return super().read_cached(position, memory)

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        self._disk.check("send", self.path)
        return super().send_to(socket_fd, position, length)

    def sync(self) -> None:
        self._disk.check("sync", self.path)
        super().sync()

    def rename(self, new_path: str) -> None:
        self._disk.check("rename", self.path)
        super().rename(new_path)
