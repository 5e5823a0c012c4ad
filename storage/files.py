"""All operating-system calls on data files, replaceable by a fake in simulations and crash tests.

Disk failures raise OSError. Invariants:

- A descriptor closes when its last user releases it (paged_file.py).
- Only one DataFile object at a time writes to a path, because it caches the size.
"""

from __future__ import annotations

import errno
import os
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from wirebroker.storage.descriptors import DirectoryLock, Volume, reports_all_errors
from wirebroker.storage.file_cache import FileCache
from wirebroker.storage.listing import names_by_kind, subdirectories
from wirebroker.storage.paged_file import PagedFile
from wirebroker.storage.small_files import read_small_file, write_small_file
from wirebroker.storage.system_calls import (
    free_and_total_bytes,
    pread,
    pwrite,
    sync_data,
    sync_names,
    write_fully,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Buffer = bytes | bytearray | memoryview

# Readers of new data need nothing farther from a log's end.
FAR_BYTES = 64 << 20


class ColdPagesError(Exception):
    """The requested range is not in memory; warm the file there in a thread."""

    def __init__(self, file: DataFile, position: int) -> None:
        super().__init__(file.path, position)
        self.file = file
        self.position = position


class DataFile(PagedFile):
    """One file, opened when needed. Units are bytes."""

    __slots__ = (
        "_changes",
        "_is_reserved",
        "_size",
        "_synced_changes",
        "is_old",
    )

    def __init__(self, cache: FileCache, path: str) -> None:
        super().__init__(cache, path)
        self._size = -1
        # An earlier process may have left unsynced data.
        self._changes = 1
        self._synced_changes = 0
        # Set by the log if the whole file is FAR_BYTES before its end.
        self.is_old = False
        self._is_reserved = False

    def size(self) -> int:
        """Return the length, cached after the first call; 0 if there is no file."""
        if self._size < 0:
            try:
                size = os.stat(self.path).st_size
            except FileNotFoundError:
                with self._cache.renaming:  # it may just have been renamed
                    size = _size_of(self.path)
            self._size = size
        return self._size

    def create(self) -> None:
        """Create an empty file, unless it exists."""
        if self.descriptor is None:
            self._open(os.O_CREAT)

    def reserve(self, length: int) -> None:
        """Create the file with `length` zero bytes, which `size()` does not count."""
        assert self.size() == 0, "only a new file can be reserved"
        descriptor = self.descriptor or self._open(os.O_CREAT)
        self._size = 0
        os.ftruncate(descriptor.number, length)
        self._changes += 1
        self._is_reserved = True

    def trim(self) -> None:
        """Truncate the reserved, unwritten part."""
        if self._is_reserved:
            self.truncate(self.size())

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        """Write everything at `position`; create the file if needed.

        Raises:
            OSError: The write failed; the file has its former size again. EIO (never ENOSPC) if
                that could not be restored: the contents are then unknown.
        """
        size = self._size if self._size >= 0 else self.size()
        self.is_recent = True
        descriptor = self.descriptor or self._open(os.O_CREAT)
        try:
            if isinstance(buffers, (memoryview, bytes, bytearray)):
                length = len(buffers)
                end = position + length
                if pwrite(descriptor.number, buffers, position) != length:
                    # Rare (a nearly full disk): write everything again, piece by piece.
                    write_fully(descriptor.number, position, [memoryview(buffers)])
            else:
                end = position + sum(map(len, buffers))
                write_fully(descriptor.number, position, buffers)
        except OSError as error:
            try:
                if os.fstat(descriptor.number).st_size > size:
                    os.ftruncate(descriptor.number, size)
            except OSError:
                message = f"a failed write ({error}) cannot be undone"
                raise OSError(errno.EIO, message, self.path) from error
            raise
        # After the write: a sync that began meanwhile may not have covered it.
        self._changes += 1
        if end > size:
            self._size = end

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        return pread(descriptor.number, length, position)

    def truncate(self, length: int) -> None:
        """Truncate the file to `length` bytes; create it if needed."""
        assert length <= self.size(), "truncation never lengthens a file"
        descriptor = self.descriptor or self._open(os.O_CREAT)
        os.ftruncate(descriptor.number, length)
        self._changes += 1
        self._size = length
        self._is_reserved = False

    def sync(self) -> None:
        """Sync data and length. Blocks."""
        descriptor = self.descriptor or self._open()
        changes = self._changes
        sync_data(descriptor.number)
        self._synced_changes = changes

    @property
    def is_dirty(self) -> bool:
        """Whether unsynced data may exist; True until a sync has ended."""
        return self._synced_changes != self._changes

    def unlink(self) -> None:
        """Remove the file if it exists; it may be created again."""
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        self._size = -1
        self._is_reserved = False

    def read_now(self, position: int, length: int, *, least: int) -> bytes | bytearray:
        """Return between `least` and `length` bytes from `position` without waiting.

        Raises:
            ColdPagesError: Fewer than `least` bytes are in memory.
        """
        if not self._reports_residency:
            data = self.read_at(position, length)
            if len(data) >= least:
                return data
            raise ColdPagesError(self, position)
        buffer = bytearray(length)
        with memoryview(buffer) as view:
            count = self.read_cached(position, view)
        if count < least:
            raise ColdPagesError(self, position)
        del buffer[count:]
        return buffer

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        """Send a range to a socket with sendfile; return the bytes sent, 0 at the end.

        Raises:
            BlockingIOError: The socket's buffer is full.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        return os.sendfile(socket_fd, descriptor.number, position, length)


class FileSlice(NamedTuple):
    """A range of a file, passed through the broker instead of its bytes."""

    file: DataFile
    position: int
    length: int

    def read(self) -> bytes:
        """Return the bytes, for users without sendfile, such as TLS."""
        return self.file.read_at(self.position, self.length)


class Files:
    """The file system of the storage layer. Paths have no trailing slash.

    Attributes:
        closing_threads: The maximum number of logs that close at the same time.
    """

    __slots__ = ("_cache",)

    closing_threads: ClassVar[int] = 16

    def __init__(self, *, max_open_files: int = 4096) -> None:
        self._cache = FileCache(max_open_files)

    def data(self, path: str) -> DataFile:
        """Return the file at `path` without opening it."""
        return DataFile(self._cache, path)

    @property
    def renaming(self) -> AbstractContextManager[object]:
        """A lock to hold while a directory with open files is renamed."""
        return self._cache.renaming

    def bound_open_files(self, max_open_files: int) -> None:
        """Set the maximum of open data files."""
        self._cache.max_open_files = max_open_files

    def close_all(self) -> None:
        """Close all open data files."""
        self._cache.close_all()

    @property
    def open_file_count(self) -> int:
        """The number of open data files."""
        return len(self._cache)

    def exists(self, path: str) -> bool:
        """Return whether `path` exists and is accessible."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:
                return False
            raise
        return True

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, unordered."""
        return os.listdir(path)

    def list_files(self, path: str) -> list[str]:
        """Return the names of a directory's regular files, unordered."""
        return self.list_by_kind(path)[0]

    def list_by_kind(self, path: str) -> tuple[list[str], list[str]]:
        """See names_by_kind."""
        return names_by_kind(path)

    def list_subdirectories(self, path: str) -> list[str]:
        """See subdirectories."""
        return subdirectories(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, unless it exists."""
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)

    def read_file(self, path: str) -> bytes:
        """See read_small_file."""
        return read_small_file(path)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """See write_small_file."""
        write_small_file(path, content, sync=sync)

    def remove_obstacle(self, path: str) -> None:
        """Remove the file, link or empty directory at the path of a new file.

        Raises:
            OSError: The directory is not empty, or the disk failed.
        """
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except (IsADirectoryError, PermissionError):  # EISDIR or EPERM
            os.rmdir(path)

    def rename(self, old_path: str, new_path: str) -> None:
        """Rename a file or a directory."""
        os.rename(old_path, new_path)

    def unlink(self, path: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory tree, if it exists."""
        import shutil  # noqa: PLC0415 - it imports decompressors, which a start does not need

        with suppress(FileNotFoundError):
            shutil.rmtree(path)
        # A slice in flight may have reopened a file of the tree.
        for file in self._cache.open_files():
            if isinstance(file, DataFile) and file.path.startswith(f"{path}{os.sep}"):
                file.free_gradually()

    def sync_directory(self, path: str) -> None:
        """Sync the names in a directory. Blocks."""
        sync_names(path)

    def open_volume(self, path: str) -> Volume | None:
        """Return the volume of `path`; None if syncfs might miss errors: then sync each file."""
        return Volume(path) if reports_all_errors(path) else None

    def lock_directory(self, path: str) -> DirectoryLock:
        """Take Apache Kafka's lock on a log directory.

        Raises:
            BlockingIOError: Another process, or this one, holds it. (Some systems raise
                PermissionError.)
        """
        return DirectoryLock(f"{path}/.lock")

    def free_bytes(self, path: str) -> int:
        """Return the volume's free bytes for unprivileged processes."""
        return free_and_total_bytes(path)[0]

    def total_bytes(self, path: str) -> int:
        """Return the volume's size."""
        return free_and_total_bytes(path)[1]

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time, in Unix milliseconds."""
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def modified_ms(self, path: str) -> int:
        """Return a file's modification time, in Unix milliseconds."""
        return os.stat(path).st_mtime_ns // 1_000_000


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
