"""A disk in memory, and the file system as one process sees it.

    Disk              what is there, and what of it would survive a power loss
    SimulatedFiles    the calls of one process on it (storage/files.py); dies with the process

Killing a process leaves everything that it has written: the page cache is the kernel's. A power
loss leaves what was synced: contents by `sync`, names by `sync_directory`.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from tests.simulation.loop import KilledError
from wirebroker.storage.files import DataFile, DirectoryLock, Files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.clock import Clock
    from wirebroker.storage.files import Buffer


class Inode:
    """The contents of a file."""

    __slots__ = ("data", "modified_ms", "synced")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = bytes(data)
        self.modified_ms = 0


class Disk:
    """All files; directories are told from files by their set."""

    def __init__(self) -> None:
        self.files: dict[str, Inode] = {}
        # A dict, for its order.
        self.directories: dict[str, None] = {"": None}
        self.locks: set[str] = set()
        self._synced_names: dict[str, Inode] = {}

    def lose_power(self) -> None:
        """Forget what was not synced."""
        self.files = dict(self._synced_names)
        self.locks.clear()
        for inode in self.files.values():
            inode.data = bytearray(inode.synced)

    def sync_directory(self, path: str) -> None:
        """Keep the names in a directory as they are now."""
        for name in [name for name in self._synced_names if _parent(name) == path]:
            del self._synced_names[name]
        for name, inode in self.files.items():
            if _parent(name) == path:
                self._synced_names[name] = inode

    def inode(self, path: str) -> Inode:
        """Return a file that exists."""
        found = self.files.get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found

    def names_in(self, path: str) -> list[str]:
        """Return the names of files and directories in a directory."""
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        found = [name for name in (*self.files, *self.directories) if _parent(name) == path]
        return [name.rpartition("/")[2] for name in found if name != path]

    def rename(self, old_path: str, new_path: str) -> None:
        """Rename a file, or a directory with all that is in it."""
        if old_path in self.files:
            self.files[new_path] = self.files.pop(old_path)
            return
        if old_path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old_path)
        prefix = f"{old_path}/"
        for names in (self.files, self.directories, self._synced_names):
            for name in [name for name in names if name == old_path or name.startswith(prefix)]:
                names[new_path + name[len(old_path) :]] = names.pop(name)  # type: ignore[assignment]


class SimulatedFiles(Files):
    """The file system for one process.

    Attributes:
        is_dead: Nothing is changed any more.
        dies_at_write: The process is killed by its n-th write from now, which is torn.
    """

    __slots__ = ("_clock", "_kill", "dies_at_write", "disk", "is_dead", "writes")

    def __init__(self, disk: Disk, clock: Clock, kill: Callable[[], None]) -> None:
        super().__init__()
        self.disk = disk
        self.is_dead = False
        self.writes = 0
        self.dies_at_write: int | None = None
        self._clock = clock
        self._kill = kill

    def may_change(self, tear: Callable[[], None] | None = None) -> bool:
        """Tell whether a change is made; the write at which the process dies is made in part."""
        if self.is_dead:
            return False
        self.writes += 1
        if self.dies_at_write is not None and self.writes >= self.dies_at_write:
            if tear is not None:
                tear()
            self._kill()
            raise KilledError
        return True

    def data(self, path: str) -> DataFile:
        return _SimulatedFile(self, path)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def close_all(self) -> None:
        """Nothing is held open."""

    def exists(self, path: str) -> bool:
        return path in self.disk.files or path in self.disk.directories

    def list_directory(self, path: str) -> list[str]:
        return self.disk.names_in(path)

    def list_subdirectories(self, path: str) -> list[str]:
        return [
            name for name in self.disk.names_in(path) if f"{path}/{name}" in self.disk.directories
        ]

    def make_directory(self, path: str) -> None:
        if self.may_change():
            while path not in self.disk.directories:
                self.disk.directories[path] = None
                path = _parent(path)

    def read_whole(self, path: str) -> bytes:
        return bytes(self.disk.inode(path).data)

    def write_whole(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        half = Inode(bytes(content[: len(content) // 2]))
        if not self.may_change(lambda: self.disk.files.update({temporary: half})):
            return
        inode = self.disk.files[temporary] = Inode()
        inode.data = bytearray(content)
        inode.modified_ms = self.now_ms()
        if sync:
            inode.synced = bytes(content)
        if self.may_change():
            self.disk.rename(temporary, path)
        if sync:
            self.sync_directory(_parent(path))

    def rename(self, old_path: str, new_path: str) -> None:
        if self.may_change():
            self.disk.rename(old_path, new_path)

    def unlink(self, path: str) -> None:
        if self.may_change():
            self.disk.files.pop(path, None)

    def remove_tree(self, path: str) -> None:
        prefix = f"{path}/"
        for names in (self.disk.files, self.disk.directories):
            for name in [name for name in names if name == path or name.startswith(prefix)]:
                if self.may_change():
                    del names[name]

    def sync_directory(self, path: str) -> None:
        if self.may_change():
            self.disk.sync_directory(path)

    def lock_directory(self, path: str) -> DirectoryLock:
        return _SimulatedLock(self, path)

    def free_bytes(self, path: str) -> int:
        del path
        return 1 << 40

    def total_bytes(self, path: str) -> int:
        del path
        return 1 << 41

    def modified_ms(self, path: str) -> int:
        return self.disk.inode(path).modified_ms


class _SimulatedLock(DirectoryLock):
    """A lock that the end of the process frees: by then its files are dead."""

    __slots__ = ("_files", "_name")

    def __init__(self, files: SimulatedFiles, path: str) -> None:
        if path in files.disk.locks:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        files.disk.locks.add(path)
        self._files = files
        self._name = path

    def release(self) -> None:
        if not self._files.is_dead:
            self._files.disk.locks.discard(self._name)


class _SimulatedFile(DataFile):
    """A file of a process; what it has opened stays its own under any name."""

    __slots__ = ("_files", "_inode")

    def __init__(self, files: SimulatedFiles, path: str) -> None:
        super().__init__(files._cache, path)
        self._files = files
        self._inode: Inode | None = None

    def size(self) -> int:
        inode = self._inode or self._files.disk.files.get(self.path)
        return 0 if inode is None else len(inode.data)

    def create(self) -> None:
        self._made()

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        data = _joined(buffers)
        inode = self._made()
        if self._files.may_change(lambda: _put(inode, position, data[: len(data) // 2])):
            _put(inode, position, data)
            inode.modified_ms = self._files.now_ms()

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._opened().data[position : position + length])

    def truncate(self, length: int) -> None:
        inode = self._made()
        assert length <= len(inode.data), "truncation never lengthens a file"
        if self._files.may_change():
            del inode.data[length:]

    def sync(self) -> None:
        inode = self._opened()
        if self._files.may_change():
            inode.synced = bytes(inode.data)

    def close(self) -> None:
        self._inode = None

    def rename(self, new_path: str) -> None:
        self._files.rename(self.path, new_path)
        self.path = new_path

    def unlink(self) -> None:
        self.close()
        self._files.unlink(self.path)

    def is_resident(self, position: int) -> bool:
        del position
        return True

    def warm(self, position: int, length: int) -> None:
        """All is in memory."""

    def cool(self, position: int, length: int) -> None:
        """All is in memory."""

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        raise AssertionError("there are no sockets")

    def _opened(self) -> Inode:
        if self._inode is None:
            self._inode = self._files.disk.inode(self.path)
        return self._inode

    def _made(self) -> Inode:
        files = self._files
        if self._inode is None and self.path not in files.disk.files:
            inode = Inode()
            if files.may_change():
                if _parent(self.path) not in files.disk.directories:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
                files.disk.files[self.path] = inode
            self._inode = inode
        return self._opened()


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _joined(buffers: Buffer | Sequence[Buffer]) -> bytes:
    if isinstance(buffers, (bytes, bytearray, memoryview)):
        return bytes(buffers)
    return b"".join(buffers)


def _put(inode: Inode, position: int, data: bytes) -> None:
    if len(inode.data) < position:
        inode.data.extend(bytes(position - len(inode.data)))
    inode.data[position : position + len(data)] = data
