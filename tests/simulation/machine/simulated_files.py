"""The file system of one process: the calls of storage/files.py on a disk in memory."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from tests.simulation.machine.disk import (
    Create,
    Directory,
    Inode,
    Rename,
    Sync,
    SyncDirectory,
    Truncate,
    Unlink,
    Write,
    missing,
)
from tests.simulation.machine.loop import KilledError
from wirebroker.storage.descriptors import DirectoryLock
from wirebroker.storage.files import DataFile, Files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.machine.disk import Disk, Event
    from wirebroker.base.clock import Clock
    from wirebroker.storage.descriptors import Volume
    from wirebroker.storage.files import Buffer

# One in this many reads misses the page cache.
_COLD_EVERY = 8


class SimulatedFiles(Files):
    """The file system of one process.

    Attributes:
        is_dead: Whether the process is dead: changes have no effect.
        writes: The number of changes and syncs.
        dies_at_write: The write that kills the process and is torn.
    """

    __slots__ = ("_clock", "_kill", "_looks", "dies_at_write", "disk", "is_dead", "writes")

    closing_threads = 1  # real threads would interleave differently in each run

    def __init__(self, disk: Disk, clock: Clock, kill: Callable[[], None]) -> None:
        super().__init__()
        self.disk = disk
        self.is_dead = False
        self.writes = 0
        self.dies_at_write: int | None = None
        self._clock = clock
        self._kill = kill
        self._looks = 0

    def die(self) -> None:
        """Ignore all further changes."""
        self.is_dead = True

    def is_cold(self) -> bool:
        """Return whether the next check of a file's pages finds them outside the page cache."""
        self._looks += 1
        return self._looks % _COLD_EVERY == 0

    def change(self, event: Event) -> bool:
        """Make a change unless the process is dead; return whether it was made."""
        if self.is_dead:
            return False
        self.writes += 1
        if self.dies_at_write is not None and self.writes >= self.dies_at_write:
            if isinstance(event, Write):
                self.disk.apply(event._replace(data=event.data[: len(event.data) // 2]))
            self._kill()
            raise KilledError
        self.disk.apply(event)
        return True

    def data(self, path: str) -> DataFile:
        return _SimulatedFile(self, path)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def close_all(self) -> None:
        """Do nothing: no file is kept open."""

    def exists(self, path: str) -> bool:
        return self.disk.find(path) is not None

    def list_directory(self, path: str) -> list[str]:
        return list(self.disk.directory(path).names)

    def list_by_kind(self, path: str) -> tuple[list[str], list[str]]:
        regular: list[str] = []
        directories: list[str] = []
        for name, node in self.disk.directory(path).names.items():
            (directories if isinstance(node, Directory) else regular).append(name)
        return regular, directories

    def remove_obstacle(self, path: str) -> None:
        if self.exists(path):
            self.unlink(path)

    def list_subdirectories(self, path: str) -> list[str]:
        names = self.disk.directory(path).names
        return [name for name, node in names.items() if isinstance(node, Directory)]

    def make_directory(self, path: str) -> None:
        directory = self.disk.root
        for part in filter(None, path.split("/")):
            if part not in directory.names and not self.change(
                Create(directory.number, part, True)
            ):
                return
            node = directory.names[part]
            if not isinstance(node, Directory):
                raise FileExistsError(errno.EEXIST, "it is a file", path)
            directory = node

    def read_file(self, path: str) -> bytes:
        return bytes(self.disk.inode(path).data)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        temporary = self.data(path + ".tmp")
        temporary.truncate(0)
        temporary.write_at(0, content)
        if sync:
            temporary.sync()
        temporary.rename(path)
        if sync:
            self.sync_directory(_split(path)[0])

    def rename(self, old_path: str, new_path: str) -> None:
        parent, name = self._place(old_path)
        if name not in parent.names:
            if self.is_dead:
                return
            raise missing(old_path)
        new_parent, new_name = self._place(new_path)
        target = new_parent.names.get(new_name)
        if isinstance(target, Directory) and target.names:
            raise OSError(errno.ENOTEMPTY, "not empty", new_path)
        self.change(Rename(parent.number, name, new_parent.number, new_name))

    def unlink(self, path: str) -> None:
        parent, name = _split(path)
        directory = self.disk.find(parent)
        if isinstance(directory, Directory) and name in directory.names:
            self.change(Unlink(directory.number, name))

    def remove_tree(self, path: str) -> None:
        node = self.disk.find(path)
        if isinstance(node, Directory):
            for name in list(node.names):
                self.remove_tree(f"{path}/{name}")
        self.unlink(path)

    def sync_directory(self, path: str) -> None:
        self.change(SyncDirectory(self.disk.directory(path).number))

    def open_volume(self, path: str) -> Volume | None:
        """Return None: the volume reports no errors, so each file is synced."""
        del path
        return None

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.disk.inode(path).modified_ms = modified_ms

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

    def _place(self, path: str) -> tuple[Directory, str]:
        parent, name = _split(path)
        return self.disk.directory(parent), name


class _SimulatedLock(DirectoryLock):
    """A lock that ends with its process: by then its files are dead."""

    __slots__ = ("_files", "_name")

    def __init__(self, files: SimulatedFiles, path: str) -> None:
        if path in files.disk.locks:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        files.disk.locks.add(path)
        self._files = files
        self._name = path

    def is_in_place(self) -> bool:
        return True

    def release(self) -> None:
        if not self._files.is_dead:
            self._files.disk.locks.discard(self._name)


class _SimulatedFile(DataFile):
    """An open file of a process, which stays open under any name."""

    __slots__ = ("_files", "_inode")

    def __init__(self, files: SimulatedFiles, path: str) -> None:
        super().__init__(files._cache, path)
        self._files = files
        self._inode: Inode | None = None

    def size(self) -> int:
        inode = self._inode or self._files.disk.find(self.path)
        return len(inode.data) if isinstance(inode, Inode) else 0

    def create(self) -> None:
        self._made()

    def reserve(self, length: int) -> None:
        del length  # a simulated file has only the written length
        self._made()

    def trim(self) -> None:
        """Do nothing: no space is reserved."""

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        inode = self._made()
        if self._files.change(Write(inode.number, position, _joined(buffers))):
            inode.modified_ms = self._files.now_ms()
            self._changes += 1

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._opened().data[position : position + length])

    def truncate(self, length: int) -> None:
        inode = self._made()
        assert length <= len(inode.data), "truncation never lengthens a file"
        if length < len(inode.data):
            self._files.change(Truncate(inode.number, length))
            self._changes += 1

    def sync(self) -> None:
        if self._files.change(Sync(self._opened().number)):
            self._synced_changes = self._changes

    def close(self) -> None:
        self._inode = None

    def rename(self, new_path: str) -> None:
        self._files.rename(self.path, new_path)
        self.path = new_path

    def unlink(self) -> None:
        self.close()
        self._files.unlink(self.path)

    def remove(self) -> None:
        self._files.unlink(self.path)

    def is_resident(self, position: int, length: int = 1) -> bool:
        del position, length
        return not self._files.is_cold()

    def read_cached(self, position: int, memory: memoryview) -> int:
        if self._files.is_cold():
            return 0
        data = self.read_at(position, len(memory))
        memory[: len(data)] = data
        return len(data)

    def read_now(self, position: int, length: int, *, least: int) -> bytes:
        del least
        return self.read_at(position, length)

    def warm(self, position: int, length: int) -> None:
        """Do nothing: all data is in memory."""

    def cool(self, position: int, length: int) -> None:
        """Do nothing: all data is in memory."""

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        raise AssertionError("there are no sockets")

    def _opened(self) -> Inode:
        if self._inode is None:
            self._inode = self._files.disk.inode(self.path)
        return self._inode

    def _made(self) -> Inode:
        files = self._files
        if self._inode is None and files.disk.find(self.path) is None:
            parent, name = files._place(self.path)
            if not files.change(Create(parent.number, name, False)):
                self._inode = Inode(-1)  # private to a dead process
        return self._opened()


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rpartition("/")
    return parent, name


def _joined(buffers: Buffer | Sequence[Buffer]) -> bytes:
    if isinstance(buffers, (bytes, bytearray, memoryview)):
        return bytes(buffers)
    return b"".join(buffers)
