"""The members and tasks that an assignor gets, and the members with copies of a task's state.

A member has a copy of a task's state if the task is one of its standby tasks, or if it reports the
offsets of the task's changelog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping  # noqa: TC003 - fields of named tuples
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.groups.assignors.in_steps import cleared_in_steps
from wirebroker.coordinator.groups.streams.tasks import TaskSets  # noqa: TC001 - likewise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.streams.process_loads import Task

# Number of tasks or members between two yields: about a millisecond.
WORK_PER_STEP: Final = 200


class TaskMember(NamedTuple):
    """A member as input of the assignor.

    Attributes:
        active: Its current active tasks.
        standby: Its current standby tasks.
        offsets: The sums of changelog offsets that it reports, by subtopology and partition.
    """

    member_id: str
    process_id: str
    active: Mapping[str, Iterable[int]]
    standby: TaskSets
    offsets: Mapping[str, Mapping[int, int]]


class SubtopologyTasks(NamedTuple):
    """The tasks of a subtopology."""

    subtopology_id: str
    task_count: int
    is_stateful: bool


class _Copy(NamedTuple):
    """A member that has a copy of a task's state."""

    member: TaskMember
    was_standby: bool
    offset_sum: int


def best_copies(
    members: Sequence[TaskMember], ranks: Mapping[str, int]
) -> Steps[dict[Task, list[TaskMember]]]:
    """Return the members with copies of each task's state, the best copy first.

    Args:
        members: In the order in which Kafka visits them.
        ranks: The positions of the subtopologies in their order, by id.
    """
    copies: dict[Task, list[_Copy]] = {}
    for number, member in enumerate(members, 1):
        yield from _note_copies(copies, ranks, member)
        if number % WORK_PER_STEP == 0:
            yield
    best: dict[Task, list[TaskMember]] = {}
    for number, (task, candidates) in enumerate(copies.items(), 1):
        candidates.sort(key=lambda copy: (not copy.was_standby, -copy.offset_sum))
        best[task] = [copy.member for copy in candidates]
        if number % WORK_PER_STEP == 0 or len(candidates) > WORK_PER_STEP:
            yield
    yield from cleared_in_steps(copies)
    return best


def _note_copies(
    copies: dict[Task, list[_Copy]], ranks: Mapping[str, int], member: TaskMember
) -> Steps[None]:
    """Add a member as a copy of its standby tasks and of the tasks whose offsets it reports."""
    for subtopology, partitions in member.standby.items():
        rank = ranks.get(subtopology)
        if rank is None:
            continue
        offsets = member.offsets.get(subtopology, {})
        for number, partition in enumerate(partitions, 1):
            copy = _Copy(member, True, offsets.get(partition, 0))
            copies.setdefault((rank, partition), []).append(copy)
            if number % WORK_PER_STEP == 0:
                yield
    for subtopology, offsets in member.offsets.items():
        rank = ranks.get(subtopology)
        if rank is None:
            continue
        standby = member.standby.get(subtopology, ())
        for number, (partition, offset_sum) in enumerate(offsets.items(), 1):
            if partition not in standby:
                copy = _Copy(member, False, offset_sum)
                copies.setdefault((rank, partition), []).append(copy)
            if number % WORK_PER_STEP == 0:
                yield
