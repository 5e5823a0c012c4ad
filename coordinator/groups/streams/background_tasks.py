"""The records of a target assignment that was computed in the background.

background.py has the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.background import assigned_group, waiting_group
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.streams.streams_records import (
    target_epoch_record,
    target_record,
)
from wirebroker.coordinator.groups.streams.task_assignment import changed_targets, job_of
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.task_assignment import AssignTasks, TaskJob
    from wirebroker.coordinator.groups.streams.tasks import Tasks
    from wirebroker.coordinator.outcome import Moment, Token

# Limit of one portion.
_MOST_TASKS: Final = 10_000

Target = tuple["StreamsMember", "Tasks"]


def begin(shard: ServingShard, effect: AssignTasks) -> TaskJob | None:
    """Return the computation; None if no member is left, or another one has begun.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: there are too many tasks.
    """
    group = waiting_group(shard, StreamsGroup, effect)
    if group is None:
        return None
    # A heartbeat tries again if the topology is not known, or has too many tasks.
    group.background_work = None
    if group.configured is None or group.is_empty:
        return None
    job = job_of(group, group.epoch, group.configured, group.assignment_configs)
    group.background_work = job
    return job


def changes(job: TaskJob, assignment: Mapping[str, Tasks]) -> Steps[list[list[Target]]]:
    """Return the members whose target changes, with their targets, in portions."""
    return background.portions(changed_targets(job, assignment), _task_count, most_size=_MOST_TASKS)


def install(
    shard: ServingShard,
    token: Token,
    now: Moment,
    *,
    job: TaskJob,
    records: Sequence[Target],
) -> Outcome:
    """Append a portion; members that have left meanwhile get no target."""
    del token, now
    group = assigned_group(shard, StreamsGroup, job)
    if group is None:
        return Outcome()

    outcome = Outcome(on_failure=background.abandoning(shard, StreamsGroup, job))
    for member, tasks in records:
        # A static member may have returned under another id.
        present = group.members.get(member.member_id) or group.static_member(member.instance_id)
        if present is not None:
            outcome.records.append(target_record(job.group_id, present.member_id, tasks))
    return outcome


def finish(shard: ServingShard, token: Token, now: Moment, *, job: TaskJob) -> Outcome:
    """Append the assignment's epoch; members get their targets with their next heartbeats."""
    del token
    group = assigned_group(shard, StreamsGroup, job)
    if group is None:
        return Outcome()
    return Outcome([target_epoch_record(job.group_id, job.epoch, now.wall_ms)])


def abandon(shard: ServingShard, job: TaskJob) -> None:
    """See background.abandon."""
    background.abandon(shard, StreamsGroup, job)


def _task_count(target: Target) -> int:
    _, tasks = target
    return sum(len(partitions) for sets in tasks for partitions in sets.values())
