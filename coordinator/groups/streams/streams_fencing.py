"""The end of memberships: members that leave, are silent, or keep tasks for too long.

Source: Kafka's GroupMetadataManager.streamsGroupLeave, streamsGroupFenceMember.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.log_bound import about_group
from wirebroker.coordinator.groups import streams_configs
from wirebroker.coordinator.groups.member_timers import expect_revocation
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup, epoch_record
from wirebroker.coordinator.groups.streams.streams_joining import (
    checked_static_member,
    existing_group,
)
from wirebroker.coordinator.groups.streams.streams_member import LEAVE_STATIC_EPOCH
from wirebroker.coordinator.groups.streams.streams_records import (
    current_record,
    member_tombstones,
    target_epoch_record,
)
from wirebroker.coordinator.groups.streams.streams_timers import (
    TaskRevocation,
    cancel_member_timers,
    restart_session,
)
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.streams_timers import TaskSession
    from wirebroker.coordinator.outcome import Moment

logger = logging.getLogger(__name__)

_NEVER_ASSIGNED_MS: Final = 0


def leave(shard: ServingShard, body: Any, now: Moment) -> Outcome:
    """Return the records of a member that leaves; a static one may leave for a while.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    del now
    group = existing_group(shard, body.group_id)
    if body.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = body.member_id
    if body.instance_id is None:
        return _fence(shard, group, group.member(body.member_id))
    existing = group.static_member(body.instance_id)
    member = checked_static_member(existing, body.instance_id, body.member_id)
    if body.member_epoch == LEAVE_STATIC_EPOCH:
        return Outcome([current_record(group.group_id, member.as_away())])
    return _fence(shard, group, member)


def _fence(shard: ServingShard, group: StreamsGroup, member: StreamsMember) -> Outcome:
    """Return the records that remove a member, and raise the group's epoch."""
    group_id, epoch = group.group_id, group.epoch + 1
    records = [*member_tombstones(group_id, member.member_id), epoch_record(group, epoch)]
    if len(group.members) == 1:
        # Nothing is left to be assigned.
        records.append(target_epoch_record(group_id, epoch, _NEVER_ASSIGNED_MS))
    cancel_member_timers(shard.timers, group_id, member.member_id)

    def on_failure(error: Any, now: Moment) -> Outcome:
        # It is still a member: restart its timers.
        del error
        watch(shard, group, member, now)
        return Outcome()

    return Outcome(records, on_failure=on_failure)


def watch(shard: ServingShard, group: StreamsGroup, member: StreamsMember, now: Moment) -> None:
    """Start a member's timers, as after a load."""
    group_id = group.group_id
    timeout_ms = streams_configs.session_timeout_ms(shard.settings.streams, shard.image, group_id)
    restart_session(shard.timers, group_id, member.member_id, timeout_ms, now)
    if not member.revoking.is_empty:
        event = TaskRevocation(group_id, member.member_id, member.epoch)
        expect_revocation(shard.timers, event, member.rebalance_timeout_ms, now)


def start_timers(shard: ServingShard, now: Moment) -> Steps[None]:
    """Start the timers of all members."""
    for group in shard.groups.values():
        if isinstance(group, StreamsGroup):
            for member in group.members.values():
                watch(shard, group, member, now)
                yield


def on_expiry(shard: ServingShard, event: TaskSession, now: Moment) -> Outcome:
    """Remove a member that is silent."""
    del now
    group = shard.groups.get(event.group_id)
    member = group.members.get(event.member_id) if isinstance(group, StreamsGroup) else None
    if not isinstance(group, StreamsGroup) or member is None:
        return Outcome()
    logger.info(
        "group %s removes member %s: its session has ended",
        *event,
        extra=about_group(event.group_id),
    )
    return _fence(shard, group, member)


def on_revocation_timeout(shard: ServingShard, event: TaskRevocation, now: Moment) -> Outcome:
    """Remove a member that has kept tasks for too long."""
    del now
    group = shard.groups.get(event.group_id)
    member = group.members.get(event.member_id) if isinstance(group, StreamsGroup) else None
    if not isinstance(group, StreamsGroup) or member is None or member.epoch != event.epoch:
        return Outcome()
    logger.info(
        "group %s removes member %s: it kept revoked tasks",
        *event[:2],
        extra=about_group(event.group_id),
    )
    return _fence(shard, group, member)
