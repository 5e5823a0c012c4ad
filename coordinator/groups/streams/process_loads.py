"""The load of a process of Kafka Streams, whose threads are members of a group.

Source: Kafka's ProcessState.
"""

from __future__ import annotations

from wirebroker.coordinator.groups.java_collections import JavaPriorityQueue, hash_order

# Rank of its subtopology among the sorted ids, and partition.
Task = tuple[int, int]


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
        # Members and their counts; None: to be sorted again.
        self._members_by_load: JavaPriorityQueue[str] | None = None

    def add_member(self, member_id: str) -> None:
        """Add a member without tasks."""
        self.counts[member_id] = 0

    def add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        """Give a task to a member; return its number of tasks."""
        self._members_by_load = None
        return self._add(member_id, task, is_active=is_active)

    def add_to_least_loaded(self, task: Task, *, is_active: bool) -> int:
        """Give a task to the member with the fewest; return its number of tasks."""
        if len(self.counts) == 1:
            (only,) = self.counts
            return self._add(only, task, is_active=is_active)
        queue = self._members_by_load
        if queue is None:
            members = [(self.counts[name], name) for name in hash_order(self.counts)]
            queue = self._members_by_load = JavaPriorityQueue(members)
        member_id = queue.poll()
        count = self._add(member_id, task, is_active=is_active)
        queue.add(count, member_id)
        return count

    def _add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        self.tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, []).append(task)
        count = self.counts[member_id] = self.counts[member_id] + 1
        self._task_count += 1
        self.load = self._task_count / len(self.counts)
        return count
