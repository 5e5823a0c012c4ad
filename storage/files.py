"""All operating-system calls on data files, replaceable by a fake in simulations and crash tests.

Disk failures raise OSError. Invariants:

- A descriptor closes when its last user releases it, so a thread may sync or warm a file while the
  event loop closes, renames or evicts it.
- Only one DataFile object at a time writes to a path, because it caches the size.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.storage.descriptors import (
    Descriptor,
    DirectoryLock,
    Volume,
    reports_all_errors,
)
from wirebroker.storage.file_cache import CachedFile, FileCache
from wirebroker.storage.listing import names_by_kind, subdirectories
from wirebroker.storage.system_calls import (
    AT_ONCE,
    OPENED,
    cool,
    expect,
    free_and_total_bytes,
    open_ahead,
    pread,
    preadv,
    pwrite,
    pwritev,
    read_no_further,
    sync_data,
    sync_names,
    warm,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Buffer = bytes | bytearray | memoryview

# Readers of new data need nothing farther from a log's end.
FAR_BYTES = 64 << 20
# IOV_MAX on Linux.
_MAX_BUFFERS = 1024
_RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
# From file systems without RWF_NOWAIT.
_UNKNOWN_FLAG = frozenset({errno.EOPNOTSUPP, errno.EINVAL})
# From opening a loop of links, or a socket.
_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO, errno.ENODEV})
_probe_byte = bytearray(1)


class ColdPagesError(Exception):
    """The requested range is not in memory; warm the file there in a thread."""

    def __init__(self, file: DataFile, position: int) -> None:
        super().__init__(file.path, position)
        self.file = file
        self.position = position


class DataFile(CachedFile):
    """One file, opened when needed. Units are bytes."""

    __slots__ = (
        "_cache",
        "_changes",
        "_is_reserved",
        "_reports_residency",
        "_size",
        "_synced_changes",
        "is_old",
        "path",
    )

    def __init__(self, cache: FileCache, path: str) -> None:
        super().__init__()
        self._cache = cache
        self._size = -1
        # An earlier process may have left unsynced data.
        self._changes = 1
        self._synced_changes = 0
        # Set by the log if the whole file is FAR_BYTES before its end.
        self.is_old = False
        self._is_reserved = False
        # False once the file system (tmpfs) has refused.
        self._reports_residency = True
        self.path = path

    def __repr__(self) -> str:
        return f"DataFile({self.path!r})"

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
                    _write_fully(descriptor.number, position, [memoryview(buffers)])
            else:
                end = position + sum(map(len, buffers))
                _write_fully(descriptor.number, position, buffers)
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

    def close(self) -> None:
        """Release the descriptor; the next use opens the file again."""
        self._cache.close(self)

    def rename(self, new_path: str) -> None:
        """Rename the file; concurrent users find it at any time."""
        with self._cache.renaming:
            os.rename(self.path, new_path)
            self.path = new_path

    def remove(self) -> None:
        """Remove the file permanently; slices in flight can still be sent."""
        if self.descriptor is None:
            with suppress(FileNotFoundError):
                self._open()
        self._cache.forget(self)
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def free_gradually(self) -> None:
        """Remove the file from the cache; it closes with its last user."""
        self._cache.forget(self)

    def unlink(self) -> None:
        """Remove the file if it exists; it may be created again."""
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        self._size = -1
        self._is_reserved = False

    def is_resident(self, position: int, length: int = 1) -> bool:
        """Return whether a range is in the page cache, or the file system cannot report it.

        Never blocks. Readahead loads pages in order, so the first and the last byte are checked.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        if self._reports_residency:
            try:
                preadv(descriptor.number, (_probe_byte,), position, _RWF_NOWAIT)
                if length > 1:
                    preadv(descriptor.number, (_probe_byte,), position + length - 1, _RWF_NOWAIT)
            except BlockingIOError:
                return False
            except OSError as error:
                self._note_unknown_flag(error)
        return True

    def read_cached(self, position: int, memory: memoryview) -> int:
        """Fill `memory` as far as cached, without blocking; return the number of bytes read.

        If the file system cannot report that, the range is read anyway.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        if self._reports_residency:
            try:
                return preadv(descriptor.number, (memory,), position, _RWF_NOWAIT)
            except BlockingIOError:
                return 0
            except OSError as error:
                self._note_unknown_flag(error)
        return preadv(descriptor.number, (memory,), position)

    def _note_unknown_flag(self, error: OSError) -> None:
        if error.errno not in _UNKNOWN_FLAG:
            raise error
        self._reports_residency = False

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

    def warm(self, position: int, length: int) -> None:
        """Read a range into the page cache. Blocks. See open_ahead."""
        warm_by(self.ahead() or self.held(), position, length)

    def ahead(self, own: Descriptor | None = None) -> Descriptor | None:
        """Return a descriptor for reading ahead in a thread; `own` is an earlier one."""
        if own is not None:
            read_no_further(self.held().number)
            return own
        number = open_ahead(self.path, self.held().number)
        return None if number is None else Descriptor(number)

    def held(self) -> Descriptor:
        """Return the descriptor, which stays open while the caller holds it."""
        return self.descriptor or self._open()

    def expect(self, position: int, length: int) -> None:
        """See system_calls.expect."""
        expect(self.held().number, position, length)

    def cool(self, position: int, length: int) -> None:
        """See system_calls.cool."""
        cool(self.held().number, position, length)

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        """Send a range to a socket with sendfile; return the bytes sent, 0 at the end.

        Raises:
            BlockingIOError: The socket's buffer is full.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        return os.sendfile(socket_fd, descriptor.number, position, length)

    def _open(self, flags: int = 0) -> Descriptor:
        flags |= os.O_RDWR | OPENED
        path = self.path
        try:
            descriptor = Descriptor(os.open(path, flags, 0o644))
        except FileNotFoundError:
            descriptor = None
        if descriptor is None or path != self.path:
            # Its old name may now be another file's.
            with self._cache.renaming:
                descriptor = Descriptor(os.open(self.path, flags, 0o644))
        self.descriptor = descriptor
        self._cache.admit(self)
        return descriptor


class FileSlice(NamedTuple):
    """A range of a file, passed through the broker instead of its bytes."""

    file: DataFile
    position: int
    length: int

    def read(self) -> bytes:
        """Return the bytes, for users without sendfile, such as TLS."""
        return self.file.read_at(self.position, self.length)


class Files:
    """The file system of the storage layer. Paths have no trailing slash."""

    __slots__ = ("_cache",)

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
        """Return the contents of a small file.

        Raises:
            FileNotFoundError: It does not exist or is not a regular file.
        """
        try:
            # Opening a pipe would wait for a writer.
            descriptor = Descriptor(os.open(path, os.O_RDONLY | AT_ONCE | OPENED))
        except OSError as error:
            if error.errno in _NO_FILE:
                raise FileNotFoundError(errno.ENOENT, "not a regular file", path) from error
            raise
        status = os.fstat(descriptor.number)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
        size = status.st_size
        content = pread(descriptor.number, size, 0)
        assert len(content) == size, "small files are read in one call"
        return content

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replace a small file atomically.

        Without `sync` (of file and directory) a power loss may leave it empty.
        """
        temporary = path + ".tmp"
        descriptor = _create(temporary)
        try:
            _write_fully(descriptor.number, 0, [content])
            if sync:
                os.fsync(descriptor.number)
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):  # a full disk needs the room
                os.unlink(temporary)
            raise
        if sync:
            self.sync_directory(os.path.dirname(path))

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


def warm_by(descriptor: Descriptor, position: int, length: int) -> None:
    """See DataFile.warm; the descriptor is from DataFile.ahead."""
    warm(descriptor.number, position, length)


def _create(path: str) -> Descriptor:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPENED
    try:
        return Descriptor(os.open(path, flags, 0o644))
    except FileExistsError:
        os.unlink(path)
        return Descriptor(os.open(path, flags, 0o644))


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _write_fully(number: int, position: int, buffers: Iterable[Buffer]) -> None:
    views = [memoryview(buffer) for buffer in buffers if len(buffer)]
    while views:
        written = pwritev(number, views[:_MAX_BUFFERS], position)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        position += written
        done = 0
        while done < len(views) and written >= len(views[done]):
            written -= len(views[done])
            done += 1
        del views[:done]
        if written:
            views[0] = views[0][written:]
