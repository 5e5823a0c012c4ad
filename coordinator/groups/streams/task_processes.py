"""The processes that have a group's tasks.

An active task belongs to one process at a time. A process never has two copies of one task, be they
active, standby or warm-up.

Source: Kafka's StreamsGroup.currentActiveTaskToProcessId and its companions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember

_Owners = dict[str, dict[int, str]]
_Copies = dict[str, dict[int, set[str]]]
_NO_OWNERS: Final[Mapping[int, str]] = {}
_NO_COPIES: Final[Mapping[int, Collection[str]]] = {}


class TaskProcesses:
    """Process ids by subtopology id and partition, for each way to process a task."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: _Owners = {}
        self._standby: _Copies = {}
        self._warmup: _Copies = {}

    def of_active(self, subtopology: str) -> Mapping[int, str]:
        """Return the processes that have active tasks, also while they give them up."""
        return self._active.get(subtopology, _NO_OWNERS)

    def of_standby(self, subtopology: str) -> Mapping[int, Collection[str]]:
        """Return the processes that have standby tasks."""
        return self._standby.get(subtopology, _NO_COPIES)

    def of_warmup(self, subtopology: str) -> Mapping[int, Collection[str]]:
        """Return the processes that have warm-up tasks."""
        return self._warmup.get(subtopology, _NO_COPIES)

    def replace(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        """Note that a member has changed, joined or left."""
        if old is not None and new is not None and _is_same(old, new):
            return
        if old is not None:
            stays = new is not None and new.process_id == old.process_id
            self._remove(old, new if stays else None)
        if new is not None:
            stays = old is not None and new.process_id == old.process_id
            self._add(new, old if stays else None)

    def _add(self, member: StreamsMember, before: StreamsMember | None) -> None:
        """Add the process of a member; `before` is the member whose copies it has already."""
        for subtopology, partitions in _active_of(member):
            processes = self._active.setdefault(subtopology, {})
            processes.update(dict.fromkeys(partitions, member.process_id))
        for copies, role in ((self._standby, "standby"), (self._warmup, "warmup")):
            for subtopology, partitions in _without(member, before, role):
                owners = copies.setdefault(subtopology, {})
                for partition in partitions:
                    owners.setdefault(partition, set()).add(member.process_id)

    def _remove(self, member: StreamsMember, after: StreamsMember | None) -> None:
        """Remove the process of a member; `after` is the member whose tasks it still has."""
        process_id = member.process_id
        for subtopology, partitions in _without(member, after, "active"):
            owners = self._active.get(subtopology, {})
            for partition in partitions:
                # Another process is a later owner.
                if owners.get(partition) == process_id:
                    del owners[partition]
            if not owners:
                self._active.pop(subtopology, None)
        for copies, role in ((self._standby, "standby"), (self._warmup, "warmup")):
            for subtopology, partitions in _without(member, after, role):
                _remove_copies(copies, subtopology, partitions, process_id)

    def check(self, members: Iterable[StreamsMember]) -> None:
        """Assert that these are the processes of the members, and that tasks have one owner."""
        expected = TaskProcesses()
        owned: set[tuple[str, int]] = set()
        for member in members:
            expected.replace(None, member)
            for tasks in (member.assigned.active, member.revoking.active):
                for subtopology, epochs in tasks.items():
                    for partition in epochs:
                        task = subtopology, partition
                        assert task not in owned, f"active task {task} has two owners"
                        owned.add(task)
        assert self._active == expected._active, "active tasks have the processes of their members"
        assert self._standby == expected._standby, "the owners of standby tasks match the members"
        assert self._warmup == expected._warmup, "the owners of warm-up tasks match the members"


def _active_of(member: StreamsMember) -> Iterator[tuple[str, Collection[int]]]:
    yield from member.assigned.active.items()
    yield from member.revoking.active.items()


def _without(
    member: StreamsMember, other: StreamsMember | None, role: str
) -> Iterator[tuple[str, Collection[int]]]:
    """Yield the tasks of a member in a role, without those that `other` has in the same role."""
    for tasks in (member.assigned, member.revoking):
        for subtopology, partitions in getattr(tasks, role).items():
            if other is None:
                yield subtopology, partitions
                continue
            kept = (getattr(each, role) for each in (other.assigned, other.revoking))
            rest = set(partitions).difference(*(sets.get(subtopology, ()) for sets in kept))
            yield subtopology, rest


def _remove_copies(
    copies: _Copies, subtopology: str, partitions: Collection[int], process_id: str
) -> None:
    owners = copies.get(subtopology, {})
    for partition in partitions:
        processes = owners.get(partition)
        if processes is None:
            continue
        processes.discard(process_id)
        if not processes:
            del owners[partition]
    if not owners:
        copies.pop(subtopology, None)


def _is_same(old: StreamsMember, new: StreamsMember) -> bool:
    same_tasks = old.assigned is new.assigned and old.revoking is new.revoking
    return same_tasks and old.process_id == new.process_id
