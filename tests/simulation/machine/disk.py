"""A disk in memory: what a process sees of it, and what of that would survive.

    Directory    names -> nodes      `synced_names`: as of its last sync
    Inode        data                `synced`: as of its last sync
    pending      of each node, what was done to it since then, oldest first

Killing a process leaves everything that it has done: the page cache is the kernel's. A power loss
leaves what was synced, and of the rest whatever the disk pleases (crash_states.py).

Every change is an event, and nodes have numbers in the order in which they are made, so that the
events of one run, applied to an empty disk one by one, give the disk after each.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple


class Create(NamedTuple):
    """A new file or directory gets a name."""

    directory: int
    name: str
    is_directory: bool


class Rename(NamedTuple):
    """A node changes its name, and takes it from whatever bore it."""

    directory: int
    name: str
    new_directory: int
    new_name: str


class Unlink(NamedTuple):
    """A name goes; the node stays for those who have it open."""

    directory: int
    name: str


class Write(NamedTuple):
    """Bytes are put at a position; what is between the end and there becomes zeros."""

    inode: int
    position: int
    data: bytes


class Truncate(NamedTuple):
    """A file is cut."""

    inode: int
    length: int


class Sync(NamedTuple):
    """The data and the length of a file are on the disk from now on (fdatasync)."""

    inode: int


class SyncDirectory(NamedTuple):
    """The names in a directory are on the disk from now on."""

    directory: int


Event = Create | Rename | Unlink | Write | Truncate | Sync | SyncDirectory
DataEvent = Write | Truncate


class NameChange(NamedTuple):
    """What happened to the names of one directory, at once."""

    moment: int  # when, among all changes of names on the disk
    removed: str | None
    added: str | None
    node: Node | None  # what `added` names


class Inode:
    """A file."""

    __slots__ = ("data", "modified_ms", "number", "pending", "synced")

    def __init__(self, number: int, data: bytes = b"") -> None:
        self.number = number
        self.data = bytearray(data)
        self.synced = data
        self.pending: list[DataEvent] = []
        self.modified_ms = 0


class Directory:
    """Names; a dict, for its order."""

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
        root: What every path begins at.
        moment: How many changes of names there were.
        nodes: All that there ever were, by number.
        events: What has happened, if it is recorded.
        locks: Paths that a process holds.
    """

    def __init__(self, *, is_recorded: bool = False) -> None:
        self.root = Directory(0)
        self.nodes: list[Node] = [self.root]
        self.events: list[Event] | None = [] if is_recorded else None
        self.locks: set[str] = set()
        self.moment = 0

    # -- looking -----------------------------------------------------------------------------

    def find(self, path: str) -> Node | None:
        """Return what is at a path."""
        node: Node | None = self.root
        for part in path.split("/"):
            if part:
                node = node.names.get(part) if isinstance(node, Directory) else None
        return node

    def inode(self, path: str) -> Inode:
        """Return a file that exists."""
        found = self.find(path)
        if not isinstance(found, Inode):
            raise missing(path)
        return found

    def directory(self, path: str) -> Directory:
        """Return a directory that exists."""
        found = self.find(path)
        if not isinstance(found, Directory):
            raise missing(path)
        return found

    def files_in(self, path: str) -> dict[str, bytes]:
        """Return names and contents of the files in a directory."""
        names = self.directory(path).names
        return {name: bytes(node.data) for name, node in names.items() if isinstance(node, Inode)}

    # -- changing ----------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Let something happen."""
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
        """Forget what was not synced."""
        self.locks.clear()
        for node in self.nodes:
            node.pending.clear()
            if isinstance(node, Inode):
                node.data = bytearray(node.synced)
            else:
                node.names = dict(node.synced_names)

    def clone(self) -> Disk:
        """Return a disk of its own that is the same; nothing is locked on it."""
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
    """Do to a file's data what an event says."""
    if isinstance(event, Truncate):
        del data[event.length :]
        return
    if len(data) < event.position:
        data.extend(bytes(event.position - len(data)))
    data[event.position : event.position + len(event.data)] = event.data


def change_names(names: dict[str, Node], change: NameChange) -> None:
    """Do to a directory's names what a change says; what it removes may be gone already."""
    if change.removed is not None:
        names.pop(change.removed, None)
    if change.added is not None and change.node is not None:
        names[change.added] = change.node


def missing(path: str) -> FileNotFoundError:
    """Return the error of a path that leads nowhere."""
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
