"""The records of a target assignment that was computed in the background.

They are appended in portions, the assignment's epoch last. Until then members reconcile with the
old epoch; a crash in between leaves an assignment that is due again.

    heartbeat   group.background_work = the effect
    begin       group.background_work = the job; its records are appended only while it is set
    abandon     None: the next heartbeat may begin another
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.group_records import (
    GroupMemberKey,
    decode_record_key,
    encode_record_key,
)
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_records import target_epoch_record
from wirebroker.coordinator.groups.consumer.target_assignment import changed_targets, job_of
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment
    from wirebroker.coordinator.groups.consumer.consumer_shard import ConsumerShard
    from wirebroker.coordinator.groups.consumer.target_assignment import (
        AssignInBackground,
        AssignmentJob,
    )
    from wirebroker.coordinator.outcome import Moment, Token

# Limits of one portion, which takes a few milliseconds to append and apply.
_MOST_RECORDS: Final = 200
_MOST_BYTES: Final = 64 << 10


def begin(shard: ConsumerShard, effect: AssignInBackground) -> AssignmentJob | None:
    """Return the computation; None if the group is gone, or another one has begun."""
    group = shard.groups.get(effect.group_id)
    if not isinstance(group, ConsumerGroup):
        return None
    # If the effect's heartbeat created the group, the replayed group has no work yet.
    if group.background_work is not None and group.background_work is not effect:
        return None
    job = job_of(group, group.epoch, shard.image.topics, shard.settings.consumer_assignors[0])
    group.background_work = job
    return job


def changes(
    job: AssignmentJob, assignment: GroupAssignment
) -> Steps[list[list[CoordinatorRecord]]]:
    """Return the records of members whose target changes, in portions."""
    portions: list[list[CoordinatorRecord]] = []
    size = _MOST_BYTES
    for record in changed_targets(job, assignment):
        if size >= _MOST_BYTES or len(portions[-1]) >= _MOST_RECORDS:
            portions.append([])
            size = 0
        portions[-1].append(record)
        size += len(record.value or b"")
        yield
    return portions


def install(
    shard: ConsumerShard,
    token: Token,
    now: Moment,
    *,
    job: AssignmentJob,
    records: Sequence[CoordinatorRecord],
) -> Outcome:
    """Append a portion; members that have left meanwhile get no target."""
    del token, now
    group = _group(shard, job)
    if group is None:
        return Outcome()

    def on_failure(_error: Any, _now: Moment) -> Outcome:
        abandon(shard, job)
        return Outcome()

    return Outcome(_of_members(group, job, records), on_failure=on_failure)


def finish(shard: ConsumerShard, token: Token, now: Moment, *, job: AssignmentJob) -> Outcome:
    """Append the assignment's epoch; members get their targets with their next heartbeats."""
    del token
    group = _group(shard, job)
    if group is None:
        return Outcome()
    return Outcome([target_epoch_record(job.group_id, job.epoch, now.wall_ms)])


def _group(shard: ConsumerShard, job: AssignmentJob) -> ConsumerGroup | None:
    """Return the group, if the assignment is still wanted."""
    group = shard.groups.get(job.group_id)
    if not isinstance(group, ConsumerGroup) or group.background_work is not job:
        return None
    return group if group.assignment_epoch < job.epoch else None


def abandon(shard: ConsumerShard, job: AssignmentJob) -> None:
    """Allow the next computation, unless it has begun."""
    group = shard.groups.get(job.group_id)
    if isinstance(group, ConsumerGroup) and group.background_work is job:
        group.background_work = None


def _of_members(
    group: ConsumerGroup, job: AssignmentJob, records: Sequence[CoordinatorRecord]
) -> list[CoordinatorRecord]:
    """Return the records of members, also of static members that returned under another id."""
    instances: dict[str, str | None] = {}
    wanted: list[CoordinatorRecord] = []
    for record in records:
        key = decode_record_key(record.key)
        assert isinstance(key, GroupMemberKey), "targets are of members"
        if key.member_id in group.members:
            wanted.append(record)
            continue
        instances = instances or {
            member.member_id: member.instance_id for member, _, _ in job.members
        }
        successor = group.static_member(instances[key.member_id])
        if successor is not None:
            key = key._replace(member_id=successor.member_id)
            wanted.append(record._replace(key=encode_record_key(key)))
    return wanted
