"""The records of a target assignment that was computed in the background.

They are appended in portions, the assignment's epoch last. Until then members reconcile with the
old epoch; a crash in between leaves an assignment that is due again.

    heartbeat   group.background_work = the effect
    begin       group.background_work = the job; its records are appended only while it is set
    abandon     None: the next heartbeat may begin another
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.streams_shard import StreamsShard
    from wirebroker.coordinator.groups.streams.task_assignment import AssignTasks, TaskJob
    from wirebroker.coordinator.groups.streams.tasks import Tasks
    from wirebroker.coordinator.outcome import Moment, Token

# Limits of one portion, which takes a few milliseconds to append and apply.
_MOST_RECORDS: Final = 200
_MOST_TASKS: Final = 10_000

Target = tuple["StreamsMember", "Tasks"]


def begin(shard: StreamsShard, effect: AssignTasks) -> TaskJob | None:
    """Return the computation; None if no member is left, or another one has begun.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: there are too many tasks.
    """
    group = shard.groups.get(effect.group_id)
    if not isinstance(group, StreamsGroup):
        return None
    # If the effect's heartbeat created the group, the replayed group has no work yet.
    if group.background_work is not None and group.background_work is not effect:
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
    portions: list[list[Target]] = []
    count = _MOST_TASKS
    for member, tasks in changed_targets(job, assignment):
        if count >= _MOST_TASKS or len(portions[-1]) >= _MOST_RECORDS:
            portions.append([])
            count = 0
        portions[-1].append((member, tasks))
        count += sum(len(partitions) for sets in tasks for partitions in sets.values())
        yield
    return portions


def install(
    shard: StreamsShard,
    token: Token,
    now: Moment,
    *,
    job: TaskJob,
    records: Sequence[Target],
) -> Outcome:
    """Append a portion; members that have left meanwhile get no target."""
    del token, now
    group = _group(shard, job)
    if group is None:
        return Outcome()

    def on_failure(_error: Any, _now: Moment) -> Outcome:
        abandon(shard, job)
        return Outcome()

    outcome = Outcome(on_failure=on_failure)
    for member, tasks in records:
        # A static member may have returned under another id.
        present = group.members.get(member.member_id) or group.static_member(member.instance_id)
        if present is not None:
            outcome.records.append(target_record(job.group_id, present.member_id, tasks))
    return outcome


def finish(shard: StreamsShard, token: Token, now: Moment, *, job: TaskJob) -> Outcome:
    """Append the assignment's epoch; members get their targets with their next heartbeats."""
    del token
    group = _group(shard, job)
    if group is None:
        return Outcome()
    return Outcome([target_epoch_record(job.group_id, job.epoch, now.wall_ms)])


def _group(shard: StreamsShard, job: TaskJob) -> StreamsGroup | None:
    """Return the group, if the assignment is still wanted."""
    group = shard.groups.get(job.group_id)
    if not isinstance(group, StreamsGroup) or group.background_work is not job:
        return None
    return group if group.assignment_epoch < job.epoch else None


def abandon(shard: StreamsShard, job: TaskJob) -> None:
    """Allow the next computation, unless it has begun."""
    group = shard.groups.get(job.group_id)
    if isinstance(group, StreamsGroup) and group.background_work is job:
        group.background_work = None
