"""A read-only file system: nothing is created, changed or locked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from wirebroker.storage import system_calls
from wirebroker.storage.descriptors import Descriptor, DirectoryLock
from wirebroker.storage.files import DataFile, Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.storage.files import Buffer


class ReadOnlyFile(DataFile):
    """A file opened for reading."""

    __slots__ = ()

    def _open(self, flags: int = 0) -> Descriptor:
        assert flags == 0, "only read"
        descriptor = Descriptor(os.open(self.path, os.O_RDONLY | system_calls.OPENED))
        self.descriptor = descriptor
        self._cache.admit(self)
        return descriptor

    def size(self) -> int:
        """Return the open file's size, even if it was replaced."""
        if self._size < 0 and self.descriptor is not None:
            self._size = os.fstat(self.descriptor.number).st_size
        return super().size()

    def create(self) -> None:
        """Refuse."""
        _refuse(self.path)

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        """Refuse."""
        _refuse(self.path)

    def truncate(self, length: int) -> None:
        """Refuse."""
        _refuse(self.path)

    def rename(self, new_path: str) -> None:
        """Refuse."""
        _refuse(self.path)

    def unlink(self) -> None:
        """Refuse."""
        _refuse(self.path)


class ReadOnlyFiles(Files):
    """A file system that asserts against changes."""

    __slots__ = ()

    def data(self, path: str) -> DataFile:
        """Return a file, opened on first use."""
        return ReadOnlyFile(self._cache, path)

    def make_directory(self, path: str) -> None:
        """Refuse."""
        _refuse(path)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Refuse."""
        _refuse(path)

    def rename(self, old_path: str, new_path: str) -> None:
        """Refuse."""
        _refuse(old_path)

    def unlink(self, path: str) -> None:
        """Refuse."""
        _refuse(path)

    def remove_tree(self, path: str) -> None:
        """Refuse."""
        _refuse(path)

    def sync_directory(self, path: str) -> None:
        """Refuse."""
        _refuse(path)

    def lock_directory(self, path: str) -> DirectoryLock:
        """Refuse."""
        _refuse(path)

    def is_directory(self, path: str) -> bool:
        """Return whether `path` is a directory."""
        return Path(path).is_dir()

    def is_file(self, path: str) -> bool:
        """Return whether `path` is a file."""
        return Path(path).is_file()

    def identity(self, path: str) -> tuple[int, int, int, int] | None:
        """Return a value that changes when a file is replaced or written, or None."""
        try:
            status = Path(path).stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def lock_holder(path: str) -> int | None:
    """Return the process that holds a log directory's lock, or None.

    If this process holds it, the file is not opened: closing a descriptor would release the lock.
    """
    lock = os.path.realpath(f"{path}/.lock")
    if lock in DirectoryLock.held():
        return os.getpid()
    try:
        number = os.open(lock, os.O_RDONLY | system_calls.OPENED)
    except FileNotFoundError:
        return None
    descriptor = Descriptor(number)
    process_id = system_calls.lock_holder(number)
    del descriptor
    return process_id


def _refuse(path: str) -> NoReturn:
    raise AssertionError(f"{path} is read-only")
