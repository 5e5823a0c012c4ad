"""Every operating-system call on data files; simulation and crash tests put a fake in its place.

`Files` names the calls on paths and directories, `DataFile` those on one open file. Laws:

- A path is opened at first use. Beyond `max_open_files` one that was not used for long is closed,
  and opened again when it is needed (file_cache.py).
- A descriptor closes when its last user lets go of it, so a thread that syncs or warms a file is
  safe while the event loop closes, renames or evicts it.
- `write_at` writes all or raises OSError; then the file has its former length again, and `size()`
  never counts what failed. If the disk does not even allow that, the error is EIO: no shortage.
- One DataFile object per path at a time: it keeps the size in memory.
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
    tells_all_errors,
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

# So far behind the end of a log begins what readers of new data do not want any more.
FAR_BYTES = 64 << 20
# The kernel refuses more buffers in one pwritev (IOV_MAX on Linux).
_MAX_BUFFERS = 1024
_RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
# What a file system says that does not know it.
_UNKNOWN_FLAG = frozenset({errno.EOPNOTSUPP, errno.EINVAL})
# What opening a loop of links, or a socket, says.
_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO, errno.ENODEV})
_probe_byte = bytearray(1)


class ColdPagesError(Exception):
    """What was to be read at once is not in memory: have a thread warm the file there."""

    def __init__(self, file: DataFile, position: int) -> None:
        super().__init__(file.path, position)
        self.file = file
        self.position = position


class DataFile(CachedFile):
    """One file, opened when needed. Positions and lengths are bytes."""

    __slots__ = (
        "_cache",
        "_changes",
        "_is_reserved",
        "_size",
        "_synced_changes",
        "_tells_residency",
        "is_old",
        "path",
    )

    def __init__(self, cache: FileCache, path: str) -> None:
        super().__init__()
        self._cache = cache
        self._size = -1  # unknown until asked for
        # An earlier process may have left what the disk hasn't.
        self._changes = 1
        self._synced_changes = 0
        # All of it is far behind the end of its log: the log's word, for who gives pages back.
        self.is_old = False
        # Whether the file may be longer than what was written to it; see `reserve`.
        self._is_reserved = False
        # Until its file system (tmpfs) has said that it can't: asking again costs 1.5 us.
        self._tells_residency = True
        self.path = path

    def __repr__(self) -> str:
        return f"DataFile({self.path!r})"

    def size(self) -> int:
        """Return the length in bytes, from memory after the first call; 0 if there is no file."""
        if self._size < 0:
            try:
                size = os.stat(self.path).st_size
            except FileNotFoundError:
                with self._cache.renaming:  # perhaps it has another name by now
                    size = _size_of(self.path)
            self._size = size
        return self._size

    def create(self) -> None:
        """Create the file, empty, if there is none; contents are left as they are."""
        if self.descriptor is None:
            self._open(os.O_CREAT)

    def reserve(self, length: int) -> None:
        """Create the file and make it so long; `size()` goes on counting what is written.

        What lies behind is zeros, which other processes see, until `trim`.
        """
        assert self.size() == 0, "only what is new can be reserved"
        descriptor = self.descriptor or self._open(os.O_CREAT)
        self._size = 0
        os.ftruncate(descriptor.number, length)
        self._changes += 1
        self._is_reserved = True

    def trim(self) -> None:
        """Give back what was reserved and not written."""
        if self._is_reserved:
            self.truncate(self.size())

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        """Write everything at `position`, creating the file if there is none.

        Raises:
            OSError: Nothing was written; the file is cut back to its former size, and `size()` is
                as before. EIO if the disk does not allow that: who knows what the file holds.
        """
        size = self._size if self._size >= 0 else self.size()
        self.is_recent = True
        descriptor = self.descriptor or self._open(os.O_CREAT)
        try:
            if isinstance(buffers, (memoryview, bytes, bytearray)):
                length = len(buffers)
                end = position + length
                if pwrite(descriptor.number, buffers, position) != length:
                    # Rare (a nearly full disk): write it all again, piece by piece.
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
        """Cut the file to `length` bytes; a file that does not exist is created, empty."""
        assert length <= self.size(), "truncation never lengthens a file"
        descriptor = self.descriptor or self._open(os.O_CREAT)
        os.ftruncate(descriptor.number, length)
        self._changes += 1
        self._size = length
        self._is_reserved = False

    def sync(self) -> None:
        """Wait until data and length are on the disk (fdatasync). Blocks: run it in a thread."""
        descriptor = self.descriptor or self._open()
        changes = self._changes
        sync_data(descriptor.number)
        self._synced_changes = changes

    @property
    def is_dirty(self) -> bool:
        """Whether the disk may not have all of it; True as well while a thread is syncing it."""
        return self._synced_changes != self._changes

    def close(self) -> None:
        """Let go of the descriptor. The file may be used again: it is then opened anew."""
        self._cache.close(self)

    def rename(self, new_path: str) -> None:
        """Rename the file; an open descriptor stays valid, and threads find it either way."""
        with self._cache.renaming:
            os.rename(self.path, new_path)
            self.path = new_path

    def remove(self) -> None:
        """Remove the file for good. Slices in flight can be sent to their end."""
        if self.descriptor is None:
            with suppress(FileNotFoundError):
                self._open()
        self._cache.forget(self)
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def let_go(self) -> None:
        """Count the file no more: it closes with its last user. Slices can be sent to their end."""
        self._cache.forget(self)

    def unlink(self) -> None:
        """Remove the file if it exists; it may be created anew."""
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        self._size = -1
        self._is_reserved = False

    def is_resident(self, position: int, length: int = 1) -> bool:
        """Return whether a range's first and last byte are in the page cache; never blocks.

        What is just being read comes about in order, so that its last byte speaks for the rest.
        Where the file system cannot tell, the answer is True.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        if self._tells_residency:
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
        """Fill `memory` from `position` on if that needs no disk (never blocks).

        Where the file system cannot tell, it is read in any case.

        Returns:
            How many bytes were read; fewer than asked for, perhaps 0, if not all of them are in
            the page cache or the file ends before.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        if self._tells_residency:
            try:
                return preadv(descriptor.number, (memory,), position, _RWF_NOWAIT)
            except BlockingIOError:
                return 0
            except OSError as error:
                self._note_unknown_flag(error)
        return preadv(descriptor.number, (memory,), position)

    def _note_unknown_flag(self, error: OSError) -> None:
        """Ask no more if that is what is wrong, else raise."""
        if error.errno not in _UNKNOWN_FLAG:
            raise error
        self._tells_residency = False

    def read_now(self, position: int, length: int, *, least: int) -> bytes | bytearray:
        """Do as read_at if at least so much is in memory; perhaps no more is returned.

        Raises:
            ColdPagesError: It is not; nothing was waited for.
        """
        if not self._tells_residency:
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
        """Read a range into the page cache. Blocks: run it in a thread.

        From then on the kernel reads ahead for such threads alone (system_calls.open_ahead).
        """
        warm_by(self.ahead() or self.held(), position, length)

    def ahead(self, own: Descriptor | None = None) -> Descriptor | None:
        """Return a descriptor for a thread that reads ahead in this file.

        Args:
            own: What this has returned before, for the same one.

        Returns:
            None if none is to be had: then the file's own will do.
        """
        if own is not None:
            read_no_further(self.held().number)
            return own
        number = open_ahead(self.path, self.held().number)
        return None if number is None else Descriptor(number)

    def held(self) -> Descriptor:
        """Return the file's descriptor, which stays open as long as the caller has it."""
        return self.descriptor or self._open()

    def expect(self, position: int, length: int) -> None:
        """Tell the kernel that a range will be read soon; it is not waited for."""
        expect(self.held().number, position, length)

    def cool(self, position: int, length: int) -> None:
        """Tell the kernel that a range will not be read again soon."""
        cool(self.held().number, position, length)

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        """Send a range to a socket without copying it through the process (sendfile).

        Returns:
            The number of bytes sent; 0 at the end of the file.

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
            # It has another name by now, perhaps, and another file the one that it had.
            with self._cache.renaming:
                descriptor = Descriptor(os.open(self.path, flags, 0o644))
        self.descriptor = descriptor
        self._cache.admit(self)
        return descriptor


class FileSlice(NamedTuple):
    """A range of a file that travels through the broker in place of its bytes."""

    file: DataFile
    position: int
    length: int

    def read(self) -> bytes:
        """Return the bytes (for TLS, tests and whatever cannot use sendfile)."""
        return self.file.read_at(self.position, self.length)


class Files:
    """The file system as the store sees it. Paths are strings without a final slash."""

    __slots__ = ("_cache",)

    def __init__(self, *, max_open_files: int = 4096) -> None:
        self._cache = FileCache(max_open_files)

    def data(self, path: str) -> DataFile:
        """Return the file at `path`; touches nothing until it is used."""
        return DataFile(self._cache, path)

    @property
    def renaming(self) -> AbstractContextManager[object]:
        """What is held while open files' directory is renamed: threads find them either way."""
        return self._cache.renaming

    def bound_open_files(self, max_open_files: int) -> None:
        """Hold at most so many data files open; those above it close when the next one opens."""
        self._cache.max_open_files = max_open_files

    def close_all(self) -> None:
        """Close every open data file (end of the process, end of a test)."""
        self._cache.close_all()

    @property
    def open_file_count(self) -> int:
        """Number of data files open now."""
        return len(self._cache)

    def exists(self, path: str) -> bool:
        """Return whether one may see something at `path`; OSError if the disk doesn't tell."""
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
        """Return the names in a directory, in no particular order."""
        return os.listdir(path)

    def list_files(self, path: str) -> list[str]:
        """Return the names of the regular files in a directory, in no particular order."""
        return self.list_by_kind(path)[0]

    def list_by_kind(self, path: str) -> tuple[list[str], list[str]]:
        """Return the names of the regular files in a directory, and the others (see listing.py)."""
        return names_by_kind(path)

    def list_subdirectories(self, path: str) -> list[str]:
        """Return the names of the directories in a directory, in no particular order."""
        return subdirectories(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; one that exists is left as it is."""
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)

    def read_whole(self, path: str) -> bytes:
        """Return the contents of a small file.

        Raises:
            FileNotFoundError: There is none, or no regular file.
            OSError: It cannot be read.
        """
        try:
            # Opening a pipe would wait for a writer.
            descriptor = Descriptor(os.open(path, os.O_RDONLY | AT_ONCE | OPENED))
        except OSError as error:
            if error.errno in _NO_FILE:
                raise FileNotFoundError(errno.ENOENT, "it is no regular file", path) from error
            raise
        status = os.fstat(descriptor.number)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "it is no regular file", path)
        size = status.st_size
        content = pread(descriptor.number, size, 0)
        assert len(content) == size, "small files are read at once"
        return content

    def write_whole(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replace a small file atomically: a reader finds the old contents or the new.

        Args:
            path: The file.
            content: All that it shall hold.
            sync: Whether to wait for the disk (file and directory). Without, a power loss may
                leave the file empty.
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

    def make_way(self, path: str) -> None:
        """Remove what has the name of a file that is to be created; a directory that is empty too.

        A file that was left there, or a link, would otherwise be written to.

        Raises:
            OSError: A directory that is not empty, or the disk.
        """
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except (IsADirectoryError, PermissionError):  # by the system: EISDIR or EPERM
            os.rmdir(path)

    def rename(self, old_path: str, new_path: str) -> None:
        """Rename a file or a directory."""
        os.rename(old_path, new_path)

    def unlink(self, path: str) -> None:
        """Remove a file; one that does not exist is no error."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it; one that does not exist is no error."""
        import shutil  # noqa: PLC0415 - it brings decompressors, which a start has no use for

        with suppress(FileNotFoundError):
            shutil.rmtree(path)
        # A slice in flight may have opened a file again that its log had closed.
        for file in self._cache.open_files():
            if isinstance(file, DataFile) and file.path.startswith(f"{path}{os.sep}"):
                file.let_go()

    def sync_directory(self, path: str) -> None:
        """Wait until the names in a directory are on the disk. Blocks: run it in a thread."""
        sync_names(path)

    def open_volume(self, path: str) -> Volume | None:
        """Return what can sync the whole file system that `path` lies on.

        Returns:
            None where its errors might not be told: sync each file then.
        """
        return Volume(path) if tells_all_errors(path) else None

    def lock_directory(self, path: str) -> DirectoryLock:
        """Take the lock that Apache Kafka takes on a log directory (`.lock`, a POSIX record lock).

        Raises:
            BlockingIOError: Another broker, or this process, holds it. (Some systems say
                PermissionError; both are OSError.)
        """
        return DirectoryLock(f"{path}/.lock")

    def free_bytes(self, path: str) -> int:
        """Return how many bytes an unprivileged process may still write below `path`."""
        return free_and_total_bytes(path)[0]

    def total_bytes(self, path: str) -> int:
        """Return how large the volume is that `path` lies on."""
        return free_and_total_bytes(path)[1]

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Say when a file was last written, in milliseconds since 1970."""
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        return os.stat(path).st_mtime_ns // 1_000_000


def warm_by(descriptor: Descriptor, position: int, length: int) -> None:
    """Read a range into the page cache by a descriptor that `ahead` has returned. Blocks."""
    warm(descriptor.number, position, length)


def _create(path: str) -> Descriptor:
    """Create a file; what a crash left under its name, or a link, is removed and not followed."""
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
