"""Descriptors that are held: closed with their last user, a directory's lock, a file system's.

Source for the lock: Kafka's FileLock; for syncfs: its manual page (errors since Linux 5.8).
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import sys

from wirebroker.storage.system_calls import FOLDER, OPENED, lock

# Where a failed writeback is sure to be told by syncfs: ext4 and xfs, from Linux 5.8 on.
_TELLING_FILE_SYSTEMS = frozenset({0xEF53, 0x58465342})
_TELLING_KERNEL = (5, 8)
# struct statfs is 120 bytes on 64-bit Linux and begins with the kind of the file system, a long.
_STATFS_BYTES = 256
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Descriptor:
    """An open file descriptor; closed by the reference count, when nobody uses it any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class Volume:
    """The file system that a directory lies on, held open so that no failed writeback is missed."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str) -> None:
        number = os.open(path, os.O_RDONLY | FOLDER | OPENED)
        self._descriptor = Descriptor(number)

    def sync(self) -> None:
        """Wait until all files and names on it are on the disk (syncfs). Blocks.

        Raises:
            OSError: What was written since it was opened or synced last may be lost.
        """
        assert _libc is not None, "only where it tells all errors"
        if _libc.syncfs(self._descriptor.number) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def tells_all_errors(path: str) -> bool:
    """Tell whether syncfs is sure to tell of writebacks that failed, where `path` lies."""
    if _libc is None:
        return False
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    return (
        release >= _TELLING_KERNEL
        and hasattr(_libc, "syncfs")
        and _libc.statfs(os.fsencode(path), status) == 0
        and ctypes.c_long.from_buffer(status).value in _TELLING_FILE_SYSTEMS
    )


class DirectoryLock:
    """A held lock on a directory; freed by `release` or the end of the process."""

    __slots__ = ("_descriptor", "_folder", "_path")

    # POSIX locks do not exclude within one process, and closing any descriptor of the file frees
    # them: the paths that this process holds are refused before the file is touched.
    _held: set[str] = set()  # noqa: RUF012 - one per process, as the lock is

    def __init__(self, path: str) -> None:
        path = os.path.realpath(path)
        if path in DirectoryLock._held:
            raise BlockingIOError(errno.EAGAIN, "locked by this process", path)
        folder = os.path.dirname(path)
        # Held open, so that no other directory gets its number.
        self._folder = Descriptor(os.open(folder, os.O_RDONLY | FOLDER | OPENED))
        descriptor = Descriptor(os.open(path, os.O_RDWR | os.O_CREAT | OPENED, 0o644))
        lock(descriptor.number)
        DirectoryLock._held.add(path)
        self._descriptor: Descriptor | None = descriptor
        self._path = path

    @classmethod
    def held(cls) -> frozenset[str]:
        """Return the lock files that this process holds, by their real paths."""
        return frozenset(cls._held)

    def is_in_place(self) -> bool:
        """Tell whether the directory's path still leads to the directory that is locked.

        It does not when the directory was moved, deleted, replaced or unmounted: what is written
        by open descriptors is then lost to the next start. That the `.lock` file alone was removed
        does not matter, as in Kafka.

        Raises:
            OSError: The disk does not tell.
        """
        if self._descriptor is None:
            return False
        try:
            found = os.stat(os.path.dirname(self._path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return os.path.samestat(found, os.fstat(self._folder.number))

    def release(self) -> None:
        """Free the lock; the second call does nothing. The `.lock` file stays, as Kafka's does."""
        if self._descriptor is not None:
            DirectoryLock._held.discard(self._path)
            self._descriptor = None
