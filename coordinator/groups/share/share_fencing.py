"""The end of memberships: members that leave or are silent; and their sessions.

Source: Kafka's GroupMetadataManager.shareGroupLeave, shareGroupFenceMember.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.log_bound import about_group
from wirebroker.coordinator.groups.group_configs import share_session_timeout_ms
from wirebroker.coordinator.groups.member_timers import cancel_session
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_joining import existing_group
from wirebroker.coordinator.groups.share.share_records import (
    epoch_record,
    member_tombstones,
    target_epoch_record,
)
from wirebroker.coordinator.groups.share.share_timers import restart_session
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_timers import ShareSessionExpiry
    from wirebroker.coordinator.outcome import Moment

logger = logging.getLogger(__name__)

_NEVER_ASSIGNED_MS: Final = 0


def leave(shard: ServingShard, group_id: str, member_id: str) -> Outcome:
    """Return the records of a member that leaves, whatever its epoch.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID.
    """
    group = existing_group(shard, group_id)
    return _fence(shard, group, group.member(member_id))


def _fence(shard: ServingShard, group: ShareGroup, member: ShareGroupMember) -> Outcome:
    """Return the records that remove a member, and raise the group's epoch."""
    group_id, epoch = group.group_id, group.epoch + 1
    names = group.names_after(member, None)
    records = member_tombstones(group_id, member.member_id)
    records.append(epoch_record(group_id, epoch, shard.topic_hashes.of_group(set(names))))
    if len(group.members) == 1:
        # Nothing is left to be assigned.
        records.append(target_epoch_record(group_id, epoch, _NEVER_ASSIGNED_MS))
    cancel_session(shard.timers, group_id, member.member_id)

    def on_failure(error: Any, now: Moment) -> Outcome:
        # It is still a member.
        del error
        watch(shard, group, member.member_id, now)
        return Outcome()

    return Outcome(records, on_failure=on_failure)


def watch(shard: ServingShard, group: ShareGroup, member_id: str, now: Moment) -> None:
    """Start a member's session again."""
    timeout_ms = share_session_timeout_ms(shard.settings, shard.image, group.group_id)
    restart_session(shard.timers, group.group_id, member_id, timeout_ms, now)


def start_timers(shard: ServingShard, now: Moment) -> Steps[None]:
    """Start the sessions of all members."""
    for group in shard.groups.values():
        if isinstance(group, ShareGroup):
            for member_id in group.members:
                watch(shard, group, member_id, now)
                yield


def on_expiry(shard: ServingShard, event: ShareSessionExpiry, now: Moment) -> Outcome:
    """Remove a member that is silent."""
    del now
    group = shard.groups.get(event.group_id)
    member = group.members.get(event.member_id) if isinstance(group, ShareGroup) else None
    if not isinstance(group, ShareGroup) or member is None:
        return Outcome()
    logger.info(
        "share group %s removes member %s: its session has ended",
        event.group_id,
        event.member_id,
        extra=about_group(event.group_id),
    )
    return _fence(shard, group, member)
