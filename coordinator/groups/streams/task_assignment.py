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
from wirebroker.coordinator.groups.java_collections import hash_order, timeline_order
from wirebroker.coordinator.groups.streams.sticky_assignor import (
    SubtopologyTasks,
    TaskMember,
    sticky,
)
from wirebroker.coordinator.groups.streams.streams_records import (
    target_epoch_record,
    target_record,
)
from wirebroker.coordinator.groups.streams.task_offsets import NO_OFFSETS
from wirebroker.coordinator.groups.streams.tasks import NO_TASKS, Tasks
from wirebroker.coordinator.groups.streams_configs import STANDBY_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.topologies.configured_topology import ConfiguredTopology

# Maximum members plus tasks for which an assignment is computed in one go; takes a few
# milliseconds.
MOST_AT_ONCE: Final = 1_000
# Tasks, with standby tasks, that a group may have: about 500 MB while they are assigned.
MOST_TASKS: Final = 1_000_000


class AssignTasks(NamedTuple):
    """Effect: compute a large group's target assignment, then install it."""

    group_id: str


class TaskJob(NamedTuple):
    """A computation: the members and the topology of one moment.

    Attributes:
        epoch: The group epoch.
        members: The members in Kafka's order, and the targets that they have or take over.
        inputs: The same members for the assignor.
        subtopologies: Empty if topics are missing: then no member gets tasks.
    """

    group_id: str
    epoch: int
    members: Sequence[tuple[StreamsMember, Tasks | None]]
    inputs: Sequence[TaskMember]
    subtopologies: Sequence[SubtopologyTasks]
    standby_count: int

    @property
    def is_small(self) -> bool:
        """Whether it may be computed at once."""
        return len(self.members) + self.task_count <= MOST_AT_ONCE

    @property
    def task_count(self) -> int:
        """Number of active and standby tasks."""
        return sum(
            each.task_count * (1 + (self.standby_count if each.is_stateful else 0))
            for each in self.subtopologies
        )


def job_of(
    group: StreamsGroup,
    epoch: int,
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
    updated: StreamsMember | None = None,
) -> TaskJob:
    """Return the computation for a group, in which one member is new or has changed.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: there are too many tasks.
    """
    subtopologies = [
        SubtopologyTasks(name, subtopology.task_count, subtopology.is_stateful)
        for name, subtopology in configured.tasks_by_subtopology.items()
    ]
    members = _members(group, updated)
    job = TaskJob(
        group.group_id,
        epoch,
        members,
        [_input(group, member) for member, _ in members],
        subtopologies,
        int(configs.get(STANDBY_REPLICAS, 0)),
    )
    if job.task_count > MOST_TASKS:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Failed to compute a new target assignment for epoch {epoch}: {job.task_count} tasks "
            f"are more than {MOST_TASKS}",
        )
    return job


def _members(
    group: StreamsGroup, updated: StreamsMember | None
) -> list[tuple[StreamsMember, Tasks | None]]:
    """Return the members after a change of one, in the order in which Kafka visits them."""
    members = {name: group.members[name] for name in timeline_order(group.members)}
    targets: Mapping[str, Tasks] = group.target
    if updated is not None:
        replaced = group.static_member(updated.instance_id)
        members[updated.member_id] = updated
        if replaced is not None and replaced.member_id != updated.member_id:
            del members[replaced.member_id]
            if replaced.member_id in targets:
                targets = {**targets, updated.member_id: targets[replaced.member_id]}
    return [(members[name], targets.get(name)) for name in hash_order(members)]


def _input(group: StreamsGroup, member: StreamsMember) -> TaskMember:
    assigned = member.assigned
    offsets = group.task_offsets.get(member.member_id, NO_OFFSETS).offsets
    return TaskMember(
        member.member_id, member.process_id, assigned.active, assigned.standby, offsets
    )


def run_job(job: TaskJob) -> Steps[dict[str, Tasks]]:
    """Compute a target assignment.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: the assignor has failed.
    """
    if not job.subtopologies:
        return {member.member_id: NO_TASKS for member, _ in job.members}
    return (yield from sticky(job.inputs, job.subtopologies, job.standby_count))


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
    for member, target in job.members:
        tasks = assignment[member.member_id]
        if tasks != target:
            yield member, tasks


def is_due(assignment_ms: int, interval_ms: int, wall_ms: int) -> bool:
    """Return whether enough time has passed since the last computation."""
    return not assignment_ms or not interval_ms or wall_ms >= assignment_ms + interval_ms
