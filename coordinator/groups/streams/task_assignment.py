"""The target assignment of a streams group: when a new one is due, and its computation.

For a small group, the heartbeat that needs the assignment computes it. For a large group, that
would block the event loop, so it is computed in slices (`TaskJob`). Members get it with a later
heartbeat, as they do while `group.streams.assignment.interval.ms` has not passed.

Source: Kafka's GroupMetadataManager.maybeUpdateStreamsTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.java_collections import hash_order_in_steps, timeline_order
from wirebroker.coordinator.groups.streams.sticky_assignor import sticky
from wirebroker.coordinator.groups.streams.streams_records import (
    target_epoch_record,
    target_record,
)
from wirebroker.coordinator.groups.streams.task_members import SubtopologyTasks, TaskMember
from wirebroker.coordinator.groups.streams.task_offsets import NO_OFFSETS
from wirebroker.coordinator.groups.streams.tasks import NO_TASKS, Tasks
from wirebroker.coordinator.groups.streams_configs import STANDBY_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.task_offsets import TaskOffsets
    from wirebroker.coordinator.groups.topologies.configured_topology import ConfiguredTopology

# Maximum members plus tasks for which an assignment is computed in one go; takes a few
# milliseconds.
MOST_AT_ONCE: Final = 1_000
# Members plus tasks whose computation other groups need not wait for: 0.1 s.
_MOST_BRIEF: Final = 10_000
# Tasks, with standby tasks, that a group may have: about 50 MB while they are assigned.
MOST_TASKS: Final = 100_000
_MEMBERS_PER_STEP: Final = 200


class AssignTasks(NamedTuple):
    """Effect: compute a large group's target assignment, then install it."""

    group_id: str


class TaskJob(NamedTuple):
    """A computation: the members and the topology of one moment.

    Attributes:
        epoch: The group epoch.
        former: The ids of the members before the request that needs the assignment.
        members: The members after it.
        targets: The targets that they have or take over.
        offsets: The offsets that they report.
        subtopologies: Empty if topics are missing: then no member gets tasks.
    """

    group_id: str
    epoch: int
    former: Sequence[str]
    members: Mapping[str, StreamsMember]
    targets: Mapping[str, Tasks]
    offsets: Mapping[str, TaskOffsets]
    subtopologies: Sequence[SubtopologyTasks]
    standby_count: int

    @property
    def is_small(self) -> bool:
        """Whether it may be computed at once."""
        return self._size <= MOST_AT_ONCE

    @property
    def is_brief(self) -> bool:
        """Whether the assignments of other groups may wait for it."""
        return self._size <= _MOST_BRIEF

    @property
    def _size(self) -> int:
        return len(self.members) + _task_count(self.subtopologies, self.standby_count)


def may_be_small(group: StreamsGroup, task_count: int) -> bool:
    """Return whether the assignment of a group, with one more member, may be computed at once."""
    return len(group.members) + task_count < MOST_AT_ONCE


def check_task_count(epoch: int, configured: ConfiguredTopology, configs: Mapping[str, str]) -> int:
    """Return the number of active and standby tasks of a group.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: there are too many.
    """
    count = _task_count(_subtopologies(configured), int(configs.get(STANDBY_REPLICAS, 0)))
    if count > MOST_TASKS:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Failed to compute a new target assignment for epoch {epoch}: {count} tasks "
            f"are more than {MOST_TASKS}",
        )
    return count


def _task_count(subtopologies: Sequence[SubtopologyTasks], standby_count: int) -> int:
    return sum(
        each.task_count * (1 + (standby_count if each.is_stateful else 0)) for each in subtopologies
    )


def _subtopologies(configured: ConfiguredTopology) -> list[SubtopologyTasks]:
    return [
        SubtopologyTasks(name, subtopology.task_count, subtopology.is_stateful)
        for name, subtopology in configured.tasks_by_subtopology.items()
    ]


def job_of(
    group: StreamsGroup,
    epoch: int,
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
    updated: StreamsMember | None = None,
) -> TaskJob:
    """Return the computation for a group, in which one member is new or has changed.

    It only copies what may change; `run_job` does the rest in steps.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: there are too many tasks.
    """
    check_task_count(epoch, configured, configs)
    members, targets = dict(group.members), dict(group.target)
    if updated is not None:
        replaced = group.static_member(updated.instance_id)
        members[updated.member_id] = updated
        if replaced is not None and replaced.member_id != updated.member_id:
            del members[replaced.member_id]
            if replaced.member_id in targets:
                targets[updated.member_id] = targets[replaced.member_id]
    return TaskJob(
        group.group_id,
        epoch,
        tuple(group.members),
        members,
        targets,
        dict(group.task_offsets),
        _subtopologies(configured),
        int(configs.get(STANDBY_REPLICAS, 0)),
    )


def run_job(job: TaskJob) -> Steps[dict[str, Tasks]]:
    """Compute a target assignment.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: the assignor has failed.
    """
    inputs: list[TaskMember] = []
    for number, member_id in enumerate((yield from _in_order(job)), 1):
        member = job.members[member_id]
        assigned = member.assigned
        offsets = job.offsets.get(member_id, NO_OFFSETS).offsets
        inputs.append(
            TaskMember(member_id, member.process_id, assigned.active, assigned.standby, offsets)
        )
        if number % _MEMBERS_PER_STEP == 0:
            yield
    if not job.subtopologies:
        return {member.member_id: NO_TASKS for member in inputs}
    return (yield from sticky(inputs, job.subtopologies, job.standby_count, job.group_id))


def _in_order(job: TaskJob) -> Steps[list[str]]:
    """Return the ids of the members in the order in which Kafka visits them."""
    former = yield from timeline_order(job.former)
    present = [name for name in former if name in job.members]
    present += job.members.keys() - set(job.former)
    return (yield from hash_order_in_steps(present))


def assign_at_once(job: TaskJob) -> dict[str, Tasks]:
    """Compute a small group's target assignment; raise as run_job does."""
    return in_one_go(run_job(job))


def target_records(
    job: TaskJob, assignment: Mapping[str, Tasks], timestamp_ms: int
) -> list[CoordinatorRecord]:
    """Return the records of a new target assignment; members whose target is the same have none."""
    records = [
        target_record(job.group_id, member.member_id, tasks)
        for member, tasks in changed_targets(job, assignment)
    ]
    records.append(target_epoch_record(job.group_id, job.epoch, timestamp_ms))
    return records


def changed_targets(
    job: TaskJob, assignment: Mapping[str, Tasks]
) -> Iterator[tuple[StreamsMember, Tasks]]:
    """Yield the members whose target has changed, or who had none, with their new targets."""
    for member_id, tasks in assignment.items():
        if tasks != job.targets.get(member_id):
            yield job.members[member_id], tasks


def is_due(assignment_ms: int, interval_ms: int, wall_ms: int) -> bool:
    """Return whether enough time has passed since the last computation."""
    return not assignment_ms or not interval_ms or wall_ms >= assignment_ms + interval_ms
