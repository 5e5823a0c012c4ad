"""The processes that have a group's tasks.

An active task belongs to one process at a time. A process never has two copies of one task, be they
active, standby or warm-up.

Source: Kafka's StreamsGroup.currentActiveTaskToProcessId and its companions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.tasks import AssignedTasks

_NONE: Final[frozenset[str]] = frozenset()
_Owners = dict[str, dict[int, str]]
_Copies = dict[str, dict[int, set[str]]]


class TaskProcesses:
    """Process ids by subtopology id and partition, for each way to process a task."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: _Owners = {}
        self._standby: _Copies = {}
        self._warmup: _Copies = {}

    def of_active(self, subtopology: str, partition: int) -> str | None:
        """Return the process that has an active task, also while it gives it up."""
        return self._active.get(subtopology, {}).get(partition)

    def of_standby(self, subtopology: str, partition: int) -> Collection[str]:
        """Return the processes that have a standby task."""
        return self._standby.get(subtopology, {}).get(partition, _NONE)

    def of_warmup(self, subtopology: str, partition: int) -> Collection[str]:
        """Return the processes that have a warm-up task."""
        return self._warmup.get(subtopology, {}).get(partition, _NONE)

    def replace(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        """Note that a member has changed, joined or left."""
        if old is not None and new is not None and _is_same(old, new):
            return
        if old is not None:
            self._remove(old.assigned, old.process_id)
            self._remove(old.revoking, old.process_id)
        if new is not None:
            self._add(new.assigned, new.process_id)
            self._add(new.revoking, new.process_id)

    def _add(self, tasks: AssignedTasks, process_id: str) -> None:
        for subtopology, epochs in tasks.active.items():
            self._active.setdefault(subtopology, {}).update(dict.fromkeys(epochs, process_id))
        for copies, sets in ((self._standby, tasks.standby), (self._warmup, tasks.warmup)):
            for subtopology, partitions in sets.items():
                owners = copies.setdefault(subtopology, {})
                for partition in partitions:
                    owners.setdefault(partition, set()).add(process_id)

    def _remove(self, tasks: AssignedTasks, process_id: str) -> None:
        for subtopology, epochs in tasks.active.items():
            owners = self._active.get(subtopology, {})
            for partition in epochs:
                # Another process is a later owner.
                if owners.get(partition) == process_id:
                    del owners[partition]
            if not owners:
                self._active.pop(subtopology, None)
        _remove_copies(self._standby, tasks.standby, process_id)
        _remove_copies(self._warmup, tasks.warmup, process_id)

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


def _remove_copies(copies: _Copies, tasks: Mapping[str, Iterable[int]], process_id: str) -> None:
    for subtopology, partitions in tasks.items():
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
