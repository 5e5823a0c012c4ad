"""The states in which a simulated crash may leave a disk.

    KILL          process killed, page cache intact: everything, some of it still unsynced
    SYNCED        power loss: only what was synced
    NAMES         all names, but no data after the last sync (a new file is empty)
    DATA          all data, but no names after the last sync
    JOURNAL       the oldest unsynced changes, names and data, the last of them torn
    REORDERED     any unsynced data changes, the oldest of each directory's names
    TORN_SECTORS  all names and writes, but one write lacks some sectors of 512 B
    TORN_PAGES    the same with pages of 4 KiB
    HOLES         all names and lengths, but some unsynced sectors are zeros
    SCRAMBLED     the same with random bytes

Sector writes and renames are atomic. Name changes of one directory reach the disk in order, as in
every journaling or copy-on-write file system; there is no other order.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tests.simulation.machine.disk import (
    Directory,
    Inode,
    Sync,
    SyncDirectory,
    Truncate,
    Unlink,
    Write,
    change_data,
    change_names,
)
from wirebroker.storage.log.leader_epochs import FILE_NAME as EPOCHS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from tests.simulation.machine.disk import DataEvent, Disk, NameChange

SECTOR: Final = 512
PAGE: Final = 4096


class CrashKind(StrEnum):
    """The states that the module describes."""

    KILL = "killed"
    SYNCED = "power lost, what was synced is left"
    NAMES = "power lost, names are left and synced data"
    DATA = "power lost, data is left and synced names"
    JOURNAL = "power lost, the oldest changes are left"
    REORDERED = "power lost, any changes are left"
    TORN_SECTORS = "power lost, a write lacks sectors"
    TORN_PAGES = "power lost, a write lacks pages"
    HOLES = "power lost, sectors are zeros"
    SCRAMBLED = "power lost, sectors are scrambled"

    @property
    def loses_power(self) -> bool:
        return self is not CrashKind.KILL


POWER_LOSSES: Final = tuple(kind for kind in CrashKind if kind.loses_power)


def crash(disk: Disk, kind: CrashKind, random: Random) -> Disk:
    """Return the disk that the next process finds; the given disk does not change.

    Only KILL leaves unsynced changes.
    """
    after = disk.clone()
    if kind is CrashKind.KILL:
        return after
    for node in after.nodes:
        if isinstance(node, Inode):
            _settle_data(node, kind, random)
    if kind in {CrashKind.TORN_SECTORS, CrashKind.TORN_PAGES}:
        _tear_one(after, PAGE if kind is CrashKind.TORN_PAGES else SECTOR, random)
    cutoff = random.randrange(after.moment + 1)
    for node in after.nodes:
        if isinstance(node, Directory):
            _settle_names(node, kind, cutoff, random)
        else:
            node.synced = bytes(node.data)
        node.pending.clear()
    return after


def age_epochs(disk: Disk, random: Random) -> None:
    """Remove each log's leader-epoch-checkpoint or its newest row.

    This imitates a partly restored directory: the batches have the epochs that the file lacks.
    """
    for directory in [node for node in disk.nodes if isinstance(node, Directory)]:
        file = directory.names.get(EPOCHS)
        if not isinstance(file, Inode):
            continue
        lines = file.data.decode("latin-1").splitlines()
        count = len(lines) - 2
        if count > 0 and lines[:2] == ["0", str(count)] and random.random() < 0.7:
            older = "\n".join(["0", str(count - 1), *lines[2:-1], ""])
            disk.apply(Truncate(file.number, 0))
            disk.apply(Write(file.number, 0, older.encode()))
            disk.apply(Sync(file.number))
        else:
            disk.apply(Unlink(directory.number, EPOCHS))
            disk.apply(SyncDirectory(directory.number))


def _settle_names(directory: Directory, kind: CrashKind, cutoff: int, random: Random) -> None:
    if kind in {CrashKind.SYNCED, CrashKind.DATA}:
        surviving: Iterable[NameChange] = ()
    elif kind is CrashKind.JOURNAL:
        surviving = (change for change in directory.pending if change.moment <= cutoff)
    elif kind is CrashKind.REORDERED:
        surviving = directory.pending[: random.randrange(len(directory.pending) + 1)]
    else:
        surviving = directory.pending
    directory.names = dict(directory.synced_names)
    for change in surviving:
        change_names(directory.names, change)
    directory.synced_names = dict(directory.names)


def _settle_data(inode: Inode, kind: CrashKind, random: Random) -> None:
    pending = inode.pending
    if not pending:
        return
    surviving: list[DataEvent] = []
    if kind is CrashKind.JOURNAL:
        count = random.randrange(len(pending) + 1)
        surviving = pending[:count]
        if count < len(pending):
            surviving += _torn(pending[count], PAGE, random, from_start=True)
    elif kind is CrashKind.REORDERED:
        for event in pending:
            luck = random.random()
            if luck < 0.5:
                surviving.append(event)
            elif luck < 0.7:
                surviving += _torn(event, SECTOR, random)
    elif kind in {CrashKind.HOLES, CrashKind.SCRAMBLED}:
        _spoil(inode, random, scrambles=kind is CrashKind.SCRAMBLED)
        return
    elif kind not in {CrashKind.SYNCED, CrashKind.NAMES}:
        return  # everything stays
    inode.data = bytearray(inode.synced)
    for event in surviving:
        change_data(inode.data, event)


def _tear_one(disk: Disk, block: int, random: Random) -> None:
    """Tear one unsynced write, with a probability of one half the newest of its file."""
    inodes = [node for node in disk.nodes if isinstance(node, Inode) and node.pending]
    if not inodes:
        return
    inode = random.choice(inodes)
    torn = len(inode.pending) - 1
    if random.random() < 0.5:
        torn = random.randrange(len(inode.pending))
    inode.data = bytearray(inode.synced)
    for number, event in enumerate(inode.pending):
        for piece in _torn(event, block, random) if number == torn else [event]:
            change_data(inode.data, piece)


def _torn(
    event: DataEvent, block: int, random: Random, *, from_start: bool = False
) -> list[DataEvent]:
    """Return the parts of an interrupted change that reached the disk."""
    if isinstance(event, Truncate):
        return [event] if random.random() < 0.5 else []
    pieces: list[DataEvent] = []
    start, end = event.position, event.position + len(event.data)
    while start < end:
        stop = min(end, start - start % block + block)
        piece = event.data[start - event.position : stop - event.position]
        pieces.append(Write(event.inode, start, piece))
        start = stop
    if from_start:
        return pieces[: random.randrange(len(pieces) + 1)]
    return [piece for piece in pieces if random.random() < 0.5]


def _spoil(inode: Inode, random: Random, *, scrambles: bool) -> None:
    """Fill some sectors that were written since the last sync with zeros or random bytes."""
    touched = {
        sector
        for event in inode.pending
        if isinstance(event, Write)
        for sector in range(
            event.position // SECTOR, -(-(event.position + len(event.data)) // SECTOR)
        )
    }
    data = inode.data
    for sector in sorted(touched):
        start, end = sector * SECTOR, min(len(data), (sector + 1) * SECTOR)
        if start >= end or random.random() < 0.5:
            continue
        if scrambles:
            data[start:end] = random.randbytes(end - start)
        else:
            data[start:end] = bytes(end - start)
        # Sector writes are atomic: earlier data keeps its content.
        old = inode.synced[start:end]
        data[start : start + len(old)] = old
