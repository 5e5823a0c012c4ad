"""File descriptors that stay open: files in use, directory locks (Kafka's FileLock) and volumes."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import sys

from wirebroker.storage.system_calls import FOLDER, OPENED, lock

# Where syncfs reports all failed writebacks: ext4 and xfs, from Linux 5.8 on.
_ERROR_REPORTING_FILE_SYSTEMS = frozenset({0xEF53, 0x58465342})
_TELLING_KERNEL = (5, 8)
# struct statfs (120 bytes on 64-bit Linux) begins with the file system's type, a long.
_STATFS_BYTES = 256
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Descriptor:
    """An open file descriptor, closed when its last reference is deleted."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class Volume:
    """The file system of a directory, held open so that no failed writeback is missed."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str) -> None:
        number = os.open(path, os.O_RDONLY | FOLDER | OPENED)
        self._descriptor = Descriptor(number)

    def sync(self) -> None:
        """Sync all files and names of the file system (syncfs). Blocks.

        Raises:
            OSError: Data written since the volume was opened or last synced may be lost.
        """
        assert _libc is not None, "used only where it reports all errors"
        if _libc.syncfs(self._descriptor.number) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def reports_all_errors(path: str) -> bool:
    """Return whether syncfs reports all failed writebacks on the volume of `path`."""
    if _libc is None:
        return False
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    return (
        release >= _TELLING_KERNEL
        and hasattr(_libc, "syncfs")
        and _libc.statfs(os.fsencode(path), status) == 0
        and ctypes.c_long.from_buffer(status).value in _ERROR_REPORTING_FILE_SYSTEMS
    )


class DirectoryLock:
    """A held lock on a directory."""

    __slots__ = ("_descriptor", "_folder", "_path")

    # POSIX locks work between processes only, and closing any descriptor of the file releases them.
    # So paths held by this process are refused before they are opened.
    _held: set[str] = set()  # noqa: RUF012 - one per process, as the lock is

    def __init__(self, path: str) -> None:
        path = os.path.realpath(path)
        if path in DirectoryLock._held:
            raise BlockingIOError(errno.EAGAIN, "locked by this process", path)
        folder = os.path.dirname(path)
        # Held open so that its inode is not reused.
        self._folder = Descriptor(os.open(folder, os.O_RDONLY | FOLDER | OPENED))
        descriptor = Descriptor(os.open(path, os.O_RDWR | os.O_CREAT | OPENED, 0o644))
        lock(descriptor.number)
        DirectoryLock._held.add(path)
        self._descriptor: Descriptor | None = descriptor
        self._path = path

    @classmethod
    def held(cls) -> frozenset[str]:
        """Return the real paths of the lock files held by this process."""
        return frozenset(cls._held)

    def is_in_place(self) -> bool:
        """Return whether the directory's path still leads to the locked directory.

        Otherwise the next start will not see later writes to its open files. As in Kafka, the
        removal of the `.lock` file does not matter.
        """
        if self._descriptor is None:
            return False
        try:
            current_stat = os.stat(os.path.dirname(self._path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return os.path.samestat(current_stat, os.fstat(self._folder.number))

    def release(self) -> None:
        """Release the lock; as in Kafka, the `.lock` file stays."""
        if self._descriptor is not None:
            DirectoryLock._held.discard(self._path)
            self._descriptor = None
