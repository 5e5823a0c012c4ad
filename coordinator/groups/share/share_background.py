"""The records of a share group's target assignment that was computed in the background.

They are appended in portions, the assignment's epoch last. Until then members stay in the old
epoch; a crash in between leaves an assignment that is due again.

    heartbeat   group.background_work = the effect
    begin       group.background_work = the job; its records are appended only while it is set
    abandon     None: the next heartbeat may begin another
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.group_records import GroupMemberKey, decode_record_key
from wirebroker.coordinator.groups.share.share_assignment import changed_targets, job_of
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_records import target_epoch_record
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment
    from wirebroker.coordinator.groups.share.share_assignment import (
        AssignShareGroup,
        ShareAssignmentJob,
    )
    from wirebroker.coordinator.groups.share.share_shard import ShareShard
    from wirebroker.coordinator.outcome import Moment, Token

# Limits of one portion, which takes a few milliseconds to append and apply.
_MOST_RECORDS: Final = 200
_MOST_BYTES: Final = 64 << 10


def begin(shard: ShareShard, effect: AssignShareGroup) -> ShareAssignmentJob | None:
    """Return the computation; None if the group is gone, or another one has begun."""
    group = shard.groups.get(effect.group_id)
    if not isinstance(group, ShareGroup):
        return None
    # If the effect's heartbeat created the group, the replayed group has no work yet.
    if group.background_work is not None and group.background_work is not effect:
        return None
    job = job_of(group, group.epoch, shard.image.topics)
    group.background_work = job
    return job


def changes(
    job: ShareAssignmentJob, assignment: GroupAssignment
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
    shard: ShareShard,
    token: Token,
    now: Moment,
    *,
    job: ShareAssignmentJob,
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

    wanted = [record for record in records if _member_of(record) in group.members]
    return Outcome(wanted, on_failure=on_failure)


def finish(shard: ShareShard, token: Token, now: Moment, *, job: ShareAssignmentJob) -> Outcome:
    """Append the assignment's epoch; members get their targets with their next heartbeats."""
    del token
    if _group(shard, job) is None:
        return Outcome()
    return Outcome([target_epoch_record(job.group_id, job.epoch, now.wall_ms)])


def _group(shard: ShareShard, job: ShareAssignmentJob) -> ShareGroup | None:
    """Return the group, if the assignment is still wanted."""
    group = shard.groups.get(job.group_id)
    if not isinstance(group, ShareGroup) or group.background_work is not job:
        return None
    return group if group.assignment_epoch < job.epoch else None


def abandon(shard: ShareShard, job: ShareAssignmentJob) -> None:
    """Allow the next computation, unless it has begun."""
    group = shard.groups.get(job.group_id)
    if isinstance(group, ShareGroup) and group.background_work is job:
        group.background_work = None


def _member_of(record: CoordinatorRecord) -> str:
    key = decode_record_key(record.key)
    assert isinstance(key, GroupMemberKey), "targets are of members"
    return key.member_id
