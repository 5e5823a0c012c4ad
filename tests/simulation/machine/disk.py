"""A disk in memory: what a process sees of it, and what would survive a crash.

    Directory    names -> nodes      `synced_names`: as of its last sync
    Inode        data                `synced`: as of its last sync
    pending      each node's changes since then, oldest first

A killed process leaves all its changes in the page cache. A power loss leaves what was synced and
an arbitrary part of the rest (crash_states.py).

Every change is an event, and nodes are numbered in order of creation: the events of a run, applied
to an empty disk, give the disk after each. A change is not atomic, so only one thread at a time may
make changes.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import NamedTuple


class Create(NamedTuple):
    """Creation of a file or directory."""

    directory: int
    name: str
    is_directory: bool


class Rename(NamedTuple):
    """Rename of a node, which replaces any node with the new name."""

    directory: int
    name: str
    new_directory: int
    new_name: str


class Unlink(NamedTuple):
    """Removal of a name; the node stays for processes that have it open."""

    directory: int
    name: str


class Write(NamedTuple):
    """Write at a position; a gap after the end becomes zeros."""

    inode: int
    position: int
    data: bytes


class Truncate(NamedTuple):
    """Truncation of a file."""

    inode: int
    length: int


class Sync(NamedTuple):
    """Sync of a file's data and length (fdatasync)."""

    inode: int


class SyncDirectory(NamedTuple):
    """Sync of a directory's names."""

    directory: int


Event = Create | Rename | Unlink | Write | Truncate | Sync | SyncDirectory
DataEvent = Write | Truncate


class NameChange(NamedTuple):
    """One atomic change of a directory's names."""

    moment: int  # position among all name changes of the disk
    removed: str | None
    added: str | None
    node: Node | None  # the node of `added`


class Inode:
    __slots__ = ("data", "modified_ms", "number", "pending", "synced")

    def __init__(self, number: int, data: bytes = b"") -> None:
        self.number = number
        self.data = bytearray(data)
        self.synced = data
        self.pending: list[DataEvent] = []
        self.modified_ms = 0


class Directory:
    """A directory; its names are ordered."""

    __slots__ = ("names", "number", "pending", "synced_names")

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, Node] = {}
        self.synced_names: dict[str, Node] = {}
        self.pending: list[NameChange] = []


Node = Inode | Directory


class Disk:
    """All nodes, from the root on.

    Attributes:
        moment: The number of name changes so far.
        nodes: All nodes ever created, by number.
        events: All events, if they are recorded.
        locks: Paths that a process has locked.
    """

    def __init__(self, *, is_recorded: bool = False) -> None:
        self.root = Directory(0)
        self.nodes: list[Node] = [self.root]
        self.events: list[Event] | None = [] if is_recorded else None
        self.locks: set[str] = set()
        self.moment = 0
        self._changing = threading.Lock()

    # -- queries -----------------------------------------------------------------------------

    def find(self, path: str) -> Node | None:
        node: Node | None = self.root
        for part in path.split("/"):
            if part:
                node = node.names.get(part) if isinstance(node, Directory) else None
        return node

    def inode(self, path: str) -> Inode:
        node = self.find(path)
        if not isinstance(node, Inode):
            raise missing(path)
        return node

    def directory(self, path: str) -> Directory:
        node = self.find(path)
        if not isinstance(node, Directory):
            raise missing(path)
        return node

    def files_in(self, path: str) -> dict[str, bytes]:
        names = self.directory(path).names
        return {name: bytes(node.data) for name, node in names.items() if isinstance(node, Inode)}

    # -- changes -----------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        is_alone = self._changing.acquire(blocking=False)
        assert is_alone, "two threads change the disk at once"
        try:
            self._apply(event)
        finally:
            self._changing.release()

    def _apply(self, event: Event) -> None:
        if self.events is not None:
            self.events.append(event)
        match event:
            case Write() | Truncate():
                inode = self.nodes[event.inode]
                assert isinstance(inode, Inode)
                change_data(inode.data, event)
                inode.pending.append(event)
            case Sync():
                inode = self.nodes[event.inode]
                assert isinstance(inode, Inode)
                inode.synced = bytes(inode.data)
                inode.pending.clear()
            case SyncDirectory():
                directory = self._directory(event.directory)
                directory.synced_names = dict(directory.names)
                directory.pending.clear()
            case Create():
                number = len(self.nodes)
                node = Directory(number) if event.is_directory else Inode(number)
                self.nodes.append(node)
                self._name(event.directory, removed=None, added=event.name, node=node)
            case Unlink():
                self._name(event.directory, removed=event.name, added=None, node=None)
            case Rename():
                self._rename(event)

    def lose_power(self) -> None:
        """Drop what was not synced."""
        self.locks.clear()
        for node in self.nodes:
            node.pending.clear()
            if isinstance(node, Inode):
                node.data = bytearray(node.synced)
            else:
                node.names = dict(node.synced_names)

    def clone(self) -> Disk:
        """Return an independent copy without locks."""
        twin = Disk()
        twin.moment = self.moment
        twin.nodes = [_empty_twin(node) for node in self.nodes]
        root = twin.nodes[0]
        assert isinstance(root, Directory)
        twin.root = root
        for node, copy in zip(self.nodes, twin.nodes, strict=True):
            if isinstance(node, Directory):
                assert isinstance(copy, Directory)
                copy.names = twin._own(node.names)
                copy.synced_names = twin._own(node.synced_names)
                copy.pending = [
                    change._replace(node=change.node and twin.nodes[change.node.number])
                    for change in node.pending
                ]
        return twin

    def _own(self, names: dict[str, Node]) -> dict[str, Node]:
        return {name: self.nodes[node.number] for name, node in names.items()}

    def _directory(self, number: int) -> Directory:
        node = self.nodes[number]
        assert isinstance(node, Directory)
        return node

    def _rename(self, event: Rename) -> None:
        node = self._directory(event.directory).names[event.name]
        if event.directory == event.new_directory:
            self._name(event.directory, removed=event.name, added=event.new_name, node=node)
        else:
            self._name(event.directory, removed=event.name, added=None, node=None)
            self._name(event.new_directory, removed=None, added=event.new_name, node=node)

    def _name(
        self, number: int, *, removed: str | None, added: str | None, node: Node | None
    ) -> None:
        self.moment += 1
        directory = self._directory(number)
        change = NameChange(self.moment, removed, added, node)
        change_names(directory.names, change)
        directory.pending.append(change)


def change_data(data: bytearray, event: DataEvent) -> None:
    if isinstance(event, Truncate):
        del data[event.length :]
        return
    if len(data) < event.position:
        data.extend(bytes(event.position - len(data)))
    data[event.position : event.position + len(event.data)] = event.data


def change_names(names: dict[str, Node], change: NameChange) -> None:
    """Apply a change to a directory's names; removed names may be missing already."""
    if change.removed is not None:
        names.pop(change.removed, None)
    if change.added is not None and change.node is not None:
        names[change.added] = change.node


def missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _empty_twin(node: Node) -> Node:
    if isinstance(node, Directory):
        return Directory(node.number)
    twin = Inode(node.number)
    twin.data = bytearray(node.data)
    twin.synced = node.synced
    twin.pending = list(node.pending)
    twin.modified_ms = node.modified_ms
    return twin
