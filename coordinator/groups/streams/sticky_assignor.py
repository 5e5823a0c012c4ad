"""The `sticky` assignor of streams groups: members keep their tasks as far as loads allow.

    active     1. to the member that has it   2. to a member with a copy of its state
               3. to the process with the smallest load
    standby    1. to the member that had it as active task   2. to a member with a copy
               3. to the process with the smallest load; never two tasks of one name in a process

A task is taken back in the first two cases while its member has less than its share. Shares shrink
as members reach them. Kafka's order of visits and its choices between equals are kept, so both
brokers assign the same.

Source: Kafka's StickyTaskAssignor; KIP-1071.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import collected
from wirebroker.base.log_bound import about_group
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.assignors.in_steps import cleared_in_steps
from wirebroker.coordinator.groups.java_collections import JavaPriorityQueue, computed_order
from wirebroker.coordinator.groups.streams.process_loads import ProcessLoad, Task
from wirebroker.coordinator.groups.streams.task_members import WORK_PER_STEP, best_copies
from wirebroker.coordinator.groups.streams.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.streams.task_members import SubtopologyTasks, TaskMember
    from wirebroker.coordinator.groups.streams.tasks import TaskSets

logger = logging.getLogger(__name__)


def sticky(
    members: Sequence[TaskMember],
    subtopologies: Sequence[SubtopologyTasks],
    standby_count: int,
    group_id: str = "",
) -> Steps[dict[str, Tasks]]:
    """Return the tasks of all members.

    Args:
        members: In the order in which Kafka visits them.
        subtopologies: Sorted by id, in Java's order.
        standby_count: Standby tasks for each task with state.
        group_id: The group, for the log.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: there are no members.
    """
    assignment = _Assignment(members, subtopologies, standby_count)
    yield from assignment.note_members()
    yield from assignment.assign_active()
    if standby_count > 0:
        unassigned = yield from assignment.assign_standby()
        if unassigned:
            logger.info(
                "group %s: %d standby tasks have no process; add instances",
                group_id,
                unassigned,
                extra=about_group(group_id),
            )
    return (yield from assignment.result())


class _Share:
    """The number of tasks that each member may have, of all that are left to members below it."""

    __slots__ = ("_members", "_tasks", "limit")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.limit = _rounded_up(tasks, members)

    def note(self, count: int) -> None:
        """Note that a member has `count` tasks by now."""
        if count == self.limit:
            self._members -= 1
            self._tasks -= count
            self.limit = _rounded_up(self._tasks, self._members)


def _rounded_up(tasks: int, members: int) -> int:
    return -(-tasks // members) if members else 0


class _Assignment:
    """An assignment that is being made."""

    __slots__ = (
        "_active_members",
        "_copies",
        "_members",
        "_processes",
        "_share",
        "_standby_count",
        "_subtopologies",
        "_total_share",
    )

    def __init__(
        self,
        members: Sequence[TaskMember],
        subtopologies: Sequence[SubtopologyTasks],
        standby_count: int,
    ) -> None:
        self._members = members
        self._subtopologies = subtopologies
        self._standby_count = standby_count
        active = sum(each.task_count for each in subtopologies)
        copies = sum(each.task_count for each in subtopologies if each.is_stateful) * standby_count
        self._share = _Share(active, len(members))
        self._total_share = _Share(active + copies, len(members))
        self._processes: dict[str, ProcessLoad] = {}
        # The members that have a task now; the best copy first.
        self._active_members: dict[Task, TaskMember] = {}
        self._copies: dict[Task, list[TaskMember]] = {}

    # -- input -------------------------------------------------------------------------------

    def note_members(self) -> Steps[None]:
        """Look at the members' processes and tasks."""
        ranks = {each.subtopology_id: rank for rank, each in enumerate(self._subtopologies)}
        for number, member in enumerate(self._members, 1):
            process = self._processes.get(member.process_id)
            if process is None:
                process = self._processes[member.process_id] = ProcessLoad()
            process.add_member(member.member_id)
            yield from self._note_active(ranks, member)
            if number % WORK_PER_STEP == 0:
                yield
        self._copies = yield from best_copies(self._members, ranks)

    def _note_active(self, ranks: Mapping[str, int], member: TaskMember) -> Steps[None]:
        for subtopology, partitions in member.active.items():
            rank = ranks.get(subtopology)
            if rank is None:
                continue
            for number, partition in enumerate(partitions, 1):
                self._active_members[rank, partition] = member
                if number % WORK_PER_STEP == 0:
                    yield

    def _by_subtopology(self, *, is_stateful: bool = False) -> Iterator[Task]:
        """Yield the tasks, those of the first subtopology first."""
        for rank, each in enumerate(self._subtopologies):
            if each.is_stateful or not is_stateful:
                for partition in range(each.task_count):
                    yield rank, partition

    def _by_partition(self, *, is_stateful: bool = False) -> Iterator[Task]:
        """Yield the tasks, those of the first partition first."""
        counts = [
            (rank, each.task_count)
            for rank, each in enumerate(self._subtopologies)
            if each.is_stateful or not is_stateful
        ]
        begin = 0
        for end in sorted({count for _, count in counts}):
            ranks = [rank for rank, count in counts if count >= end]
            for partition in range(begin, end):
                for rank in ranks:
                    yield rank, partition
            begin = end

    # -- active tasks ------------------------------------------------------------------------

    def assign_active(self) -> Steps[None]:
        """Assign the active tasks."""
        left: list[Task] = []
        for number, task in enumerate(self._by_partition(), 1):
            if not self._take_back(task, self._active_members.get(task)):
                left.append(task)
            if number % WORK_PER_STEP == 0:
                yield
        rest: set[Task] = set()
        work = 0
        for task in left:
            copies = self._copies.get(task, ())
            if not self._take_back(task, self._least_loaded(copies)):
                rest.add(task)
            work += 1 + len(copies)
            if work >= WORK_PER_STEP:
                work = 0
                yield
        yield from cleared_in_steps(left)
        if not rest:
            return
        queue = yield from self._by_load()
        for number, task in enumerate(self._by_subtopology(), 1):
            if task in rest:
                self._give_to_least_loaded(queue, task)
            if number % WORK_PER_STEP == 0:
                yield
        yield from cleared_in_steps(rest)

    def _give_to_least_loaded(self, queue: JavaPriorityQueue[ProcessLoad], task: Task) -> None:
        if not queue:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "There is no process for active tasks."
            )
        process = queue.poll()
        self._note(process.add_to_least_loaded(task, is_active=True))
        queue.add(process.load, process)

    def _take_back(self, task: Task, member: TaskMember | None) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if process.counts[member.member_id] >= self._share.limit:
            return False
        self._note(process.add(member.member_id, task, is_active=True))
        return True

    def _note(self, count: int) -> None:
        self._share.note(count)
        self._total_share.note(count)

    def _by_load(self) -> Steps[JavaPriorityQueue[ProcessLoad]]:
        calls = (member.process_id for member in self._members)
        names = yield from computed_order(calls, capacity=len(self._members))
        queue: JavaPriorityQueue[ProcessLoad] = JavaPriorityQueue()
        for number, name in enumerate(names, 1):
            process = self._processes[name]
            yield from process.sort_members()
            queue.add(process.load, process)
            if number % WORK_PER_STEP == 0:
                yield
        return queue

    def _least_loaded(
        self, members: Sequence[TaskMember], without: Task | None = None
    ) -> TaskMember | None:
        """Return a member whose process and whose own load are smaller than the others'."""
        chosen: TaskMember | None = None
        process_load = member_load = 0.0
        for member in members:
            process = self._processes[member.process_id]
            if without is not None and without in process.tasks:
                continue
            loads = process.load, process.counts[member.member_id]
            if chosen is None or (loads[0] < process_load and loads[1] < member_load):
                chosen, (process_load, member_load) = member, loads
        return chosen

    # -- standby tasks -----------------------------------------------------------------------

    def assign_standby(self) -> Steps[int]:
        """Assign the standby tasks; return the number of those that have no process."""
        missing: dict[Task, int] = {}
        work = 0
        # The last first.
        tasks = yield from collected(self._by_partition(is_stateful=True))
        while tasks:
            task = tasks.pop()
            taken = 0
            while taken < self._standby_count and self._keep_copy(task):
                taken += 1
            missing[task] = self._standby_count - taken
            work += (1 + taken) * (1 + len(self._copies.get(task, ())))
            if work >= WORK_PER_STEP:
                work = 0
                yield
        return (yield from self._assign_missing(missing))

    def _assign_missing(self, missing: dict[Task, int]) -> Steps[int]:
        """Assign standby tasks to the least loaded processes; return how many are left."""
        queue = yield from self._by_load()
        unassigned = work = 0
        tasks = yield from collected(self._by_subtopology(is_stateful=True))
        while tasks:
            task = tasks.pop()
            count = missing.pop(task)
            for assigned in range(count):
                work += 1
                if not self._copy_to_least_loaded(queue, task):
                    unassigned += count - assigned
                    work += len(queue)
                    break
            if work >= WORK_PER_STEP:
                work = 0
                yield
        return unassigned

    def _keep_copy(self, task: Task) -> bool:
        """Give a standby task to a member with the task's state."""
        active = self._active_members.get(task)
        if active is not None:
            process = self._processes[active.process_id]
            if task not in process.tasks and self._has_share(process, active):
                self._total_share.note(process.add(active.member_id, task, is_active=False))
                return True
        member = self._least_loaded(self._copies.get(task, ()), without=task)
        if member is None:
            return False
        process = self._processes[member.process_id]
        if not self._has_share(process, member):
            return False
        self._total_share.note(process.add(member.member_id, task, is_active=False))
        return True

    def _has_share(self, process: ProcessLoad, member: TaskMember) -> bool:
        return process.counts[member.member_id] < self._total_share.limit

    def _copy_to_least_loaded(self, queue: JavaPriorityQueue[ProcessLoad], task: Task) -> bool:
        polled: list[ProcessLoad] = []
        is_found = False
        while queue and not is_found:
            process = queue.poll()
            polled.append(process)
            if task not in process.tasks:
                self._total_share.note(process.add_to_least_loaded(task, is_active=False))
                is_found = True
        for process in reversed(polled):
            queue.add(process.load, process)
        return is_found

    # -- result ------------------------------------------------------------------------------

    def result(self) -> Steps[dict[str, Tasks]]:
        """Return the tasks of each member."""
        assigned: dict[str, Tasks] = {}
        for number, member in enumerate(self._members, 1):
            process = self._processes[member.process_id]
            assigned[member.member_id] = Tasks(
                (yield from self._sets(process.active.get(member.member_id, ()))),
                (yield from self._sets(process.standby.get(member.member_id, ()))),
            )
            if number % WORK_PER_STEP == 0:
                yield
        yield from cleared_in_steps(self._active_members)
        yield from cleared_in_steps(self._copies)
        for process in self._processes.values():
            yield from process.release()
        return assigned

    def _sets(self, tasks: Iterable[Task]) -> Steps[TaskSets]:
        partitions: dict[int, list[int]] = {}
        for number, (rank, partition) in enumerate(tasks, 1):
            partitions.setdefault(rank, []).append(partition)
            if number % WORK_PER_STEP == 0:
                yield
        return {
            self._subtopologies[rank].subtopology_id: frozenset(numbers)
            for rank, numbers in partitions.items()
        }
