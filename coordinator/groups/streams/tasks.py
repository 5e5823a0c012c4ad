"""Tasks: the partitions of subtopologies that members process, by the way they do.

    active    reads the partition's records and writes its results
    standby   keeps a copy of the task's state
    warm-up   catches up with the state of a task that is to move; Kafka 4.4 assigns none

Source: Kafka's TasksTuple, TasksTupleWithEpochs; KIP-1071.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.base.clock import Steps

# Partitions by subtopology id, none of them empty unless a request says so.
TaskSets: TypeAlias = "Mapping[str, frozenset[int]]"
# The epochs in which a member got its active tasks, by subtopology id and partition.
ActiveTasks: TypeAlias = "Mapping[str, Mapping[int, int]]"


_NO_SETS: Final[TaskSets] = MappingProxyType({})
_NO_ACTIVE: Final[ActiveTasks] = MappingProxyType({})


class Tasks(NamedTuple):
    """Tasks of one member: its target, or what it reports to own."""

    active: TaskSets = _NO_SETS
    standby: TaskSets = _NO_SETS
    warmup: TaskSets = _NO_SETS

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not (self.active or self.standby or self.warmup)

    def has_any_of(self, others: AssignedTasks) -> bool:
        """Return whether it contains any of these tasks, in the same way."""
        return (
            _overlaps(self.active, others.active)
            or _overlaps(self.standby, others.standby)
            or _overlaps(self.warmup, others.warmup)
        )


class AssignedTasks(NamedTuple):
    """Tasks that a member has, or is to give up."""

    active: ActiveTasks = _NO_ACTIVE
    standby: TaskSets = _NO_SETS
    warmup: TaskSets = _NO_SETS

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not (self.active or self.standby or self.warmup)

    def equals(self, tasks: Tasks) -> bool:
        """Return whether these are the same tasks, whatever the epochs."""
        active = {subtopology: epochs.keys() for subtopology, epochs in self.active.items()}
        same_copies = tasks.standby == self.standby and tasks.warmup == self.warmup
        return same_copies and tasks.active == active


NO_TASKS: Final = Tasks()
NOTHING_ASSIGNED: Final = AssignedTasks()
NO_PARTITIONS: Final[frozenset[int]] = frozenset()


def _overlaps(partitions: TaskSets, others: Mapping[str, Collection[int]]) -> bool:
    return any(
        subtopology in others and not owned.isdisjoint(others[subtopology])
        for subtopology, owned in partitions.items()
    )


def task_sets(task_ids: Iterable[Any]) -> dict[str, frozenset[int]]:
    """Return the tasks of a request or record.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: it names a subtopology twice, as in Kafka.
    """
    tasks: dict[str, frozenset[int]] = {}
    for entry in task_ids:
        if entry.subtopology_id in tasks:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"The tasks name subtopology {entry.subtopology_id} twice.",
            )
        tasks[entry.subtopology_id] = frozenset(entry.partitions)
    return tasks


def task_ids(tasks: Mapping[str, Collection[int]]) -> list[dict[str, Any]]:
    """Return tasks as in a response or record, sorted."""
    return in_one_go(task_ids_in_steps(tasks))


def task_ids_in_steps(tasks: Mapping[str, Collection[int]]) -> Steps[list[dict[str, Any]]]:
    """Do the same in steps."""
    listed: list[dict[str, Any]] = []
    work = 0
    for subtopology, partitions in sorted(tasks.items()):
        listed.append({"subtopology_id": subtopology, "partitions": sorted(partitions)})
        work += 1 + len(partitions)
        if work >= WORK_PER_STEP:
            work = 0
            yield
    return listed
