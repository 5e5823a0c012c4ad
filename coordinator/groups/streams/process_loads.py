"""The load of a process of Kafka Streams, whose threads are members of a group.

Source: Kafka's ProcessState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.groups.assignors.in_steps import cleared_in_steps
from wirebroker.coordinator.groups.java_collections import JavaPriorityQueue, hash_order_in_steps

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

# Rank of its subtopology among the sorted ids, and partition.
Task = tuple[int, int]

_MEMBERS_PER_STEP: Final = 1_000


class ProcessLoad:
    """The tasks of a process.

    Attributes:
        load: Tasks per member.
        counts: Numbers of tasks by member id.
        tasks: All tasks of its members.
        active: The active tasks by member id.
        standby: The standby tasks by member id.
    """

    __slots__ = ("_members_by_load", "_task_count", "active", "counts", "load", "standby", "tasks")

    def __init__(self) -> None:
        self.load = 0.0
        self.counts: dict[str, int] = {}
        self.tasks: set[Task] = set()
        self.active: dict[str, list[Task]] = {}
        self.standby: dict[str, list[Task]] = {}
        self._task_count = 0
        # Members by their counts; None: to be sorted again.
        self._members_by_load: JavaPriorityQueue[str] | None = None

    def add_member(self, member_id: str) -> None:
        """Add a member without tasks."""
        self.counts[member_id] = 0

    def sort_members(self) -> Steps[None]:
        """Sort the members by their tasks, before calls of `add_to_least_loaded`."""
        if self._members_by_load is not None:
            # As in Kafka, whose choices between equals depend on earlier ones.
            return
        queue = JavaPriorityQueue[str]()
        names = yield from hash_order_in_steps(self.counts)
        for number, name in enumerate(names, 1):
            queue.add(self.counts[name], name)
            if number % _MEMBERS_PER_STEP == 0:
                yield
        self._members_by_load = queue

    def add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        """Give a task to a member; return its number of tasks."""
        self._members_by_load = None
        return self._add(member_id, task, is_active=is_active)

    def _add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        self.tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, []).append(task)
        count = self.counts[member_id] = self.counts[member_id] + 1
        self._task_count += 1
        self.load = self._task_count / len(self.counts)
        return count

    def add_to_least_loaded(self, task: Task, *, is_active: bool) -> int:
        """Give a task to the member with the fewest; return its number of tasks."""
        queue = self._members_by_load
        assert queue is not None, "the members are sorted"
        member_id = queue.poll()
        count = self._add(member_id, task, is_active=is_active)
        queue.add(count, member_id)
        return count

    def release(self) -> Steps[None]:
        """Forget the tasks, in steps."""
        for tasks in (*self.active.values(), *self.standby.values()):
            yield from cleared_in_steps(tasks)
        yield from cleared_in_steps(self.tasks)
