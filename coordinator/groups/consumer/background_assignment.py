"""The records of a target assignment that was computed in the background.

background.py has the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.group_records import (
    GroupMemberKey,
    KnownRecord,
    decode_record_key,
)
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.background import assigned_group, waiting_group
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_records import target_epoch_record
from wirebroker.coordinator.groups.consumer.target_assignment import changed_targets, job_of
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment
    from wirebroker.coordinator.groups.consumer.target_assignment import (
        AssignInBackground,
        AssignmentJob,
    )
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Token

# Limit of one portion.
_MOST_BYTES: Final = 64 << 10


def begin(shard: ServingShard, effect: AssignInBackground) -> AssignmentJob | None:
    """Return the computation; None if the group is gone, or another one has begun."""
    group = waiting_group(shard, ConsumerGroup, effect)
    if group is None:
        return None
    job = job_of(group, group.epoch, shard.image.topics, shard.settings.consumer_assignors[0])
    group.background_work = job
    return job


def changes(
    job: AssignmentJob, assignment: GroupAssignment
) -> Steps[list[list[CoordinatorRecord]]]:
    """Return the records of members whose target changes, in portions."""
    return background.portions(changed_targets(job, assignment), _size_of, most_size=_MOST_BYTES)


def install(
    shard: ServingShard,
    token: Token,
    now: Moment,
    *,
    job: AssignmentJob,
    records: Sequence[CoordinatorRecord],
) -> Outcome:
    """Append a portion; members that have left meanwhile get no target."""
    del token, now
    group = assigned_group(shard, ConsumerGroup, job)
    if group is None:
        return Outcome()

    return Outcome(
        _of_members(group, job, records),
        on_failure=background.abandoning(shard, ConsumerGroup, job),
    )


def finish(shard: ServingShard, token: Token, now: Moment, *, job: AssignmentJob) -> Outcome:
    """Append the assignment's epoch; members get their targets with their next heartbeats."""
    del token
    group = assigned_group(shard, ConsumerGroup, job)
    if group is None:
        return Outcome()
    return Outcome([target_epoch_record(job.group_id, job.epoch, now.wall_ms)])


def abandon(shard: ServingShard, job: AssignmentJob) -> None:
    """See background.abandon."""
    background.abandon(shard, ConsumerGroup, job)


def _of_members(
    group: ConsumerGroup, job: AssignmentJob, records: Sequence[CoordinatorRecord]
) -> list[CoordinatorRecord]:
    """Return the records of members, also of static members that returned under another id."""
    wanted: list[CoordinatorRecord] = []
    for record in records:
        key = decode_record_key(record.key)
        assert isinstance(key, GroupMemberKey), "targets are of members"
        if key.member_id in group.members:
            wanted.append(record)
            continue
        successor = group.static_member(job.members[key.member_id].instance_id)
        if successor is not None:
            assert isinstance(record, KnownRecord)
            assert record.value is not None
            key = key._replace(member_id=successor.member_id)
            wanted.append(KnownRecord.of(key, record.value, record.body))
    return wanted


def _size_of(record: CoordinatorRecord) -> int:
    return len(record.value or b"")
