"""The records of a share group's target assignment that was computed in the background.

background.py has the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.group_records import GroupMemberKey, decode_record_key
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.background import assigned_group, waiting_group
from wirebroker.coordinator.groups.share.share_assignment import changed_targets, job_of
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_records import target_epoch_record
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_assignment import (
        AssignShareGroup,
        ShareAssignmentJob,
    )
    from wirebroker.coordinator.outcome import Moment, Token

# Limit of one portion.
_MOST_BYTES: Final = 64 << 10


def begin(shard: ServingShard, effect: AssignShareGroup) -> ShareAssignmentJob | None:
    """Return the computation; None if the group is gone, or another one has begun."""
    group = waiting_group(shard, ShareGroup, effect)
    if group is None:
        return None
    job = job_of(group, group.epoch, shard.image.topics)
    group.background_work = job
    return job


def changes(
    job: ShareAssignmentJob, assignment: GroupAssignment
) -> Steps[list[list[CoordinatorRecord]]]:
    """Return the records of members whose target changes, in portions."""
    return background.portions(changed_targets(job, assignment), _size_of, most_size=_MOST_BYTES)


def install(
    shard: ServingShard,
    token: Token,
    now: Moment,
    *,
    job: ShareAssignmentJob,
    records: Sequence[CoordinatorRecord],
) -> Outcome:
    """Append a portion; members that have left meanwhile get no target."""
    del token, now
    group = assigned_group(shard, ShareGroup, job)
    if group is None:
        return Outcome()

    wanted = [record for record in records if _member_of(record) in group.members]
    return Outcome(wanted, on_failure=background.abandoning(shard, ShareGroup, job))


def finish(shard: ServingShard, token: Token, now: Moment, *, job: ShareAssignmentJob) -> Outcome:
    """Append the assignment's epoch; members get their targets with their next heartbeats."""
    del token
    if assigned_group(shard, ShareGroup, job) is None:
        return Outcome()
    return Outcome([target_epoch_record(job.group_id, job.epoch, now.wall_ms)])


def abandon(shard: ServingShard, job: ShareAssignmentJob) -> None:
    """See background.abandon."""
    background.abandon(shard, ShareGroup, job)


def _member_of(record: CoordinatorRecord) -> str:
    key = decode_record_key(record.key)
    assert isinstance(key, GroupMemberKey), "targets are of members"
    return key.member_id


def _size_of(record: CoordinatorRecord) -> int:
    return len(record.value or b"")
