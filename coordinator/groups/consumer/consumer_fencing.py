"""The end of memberships: members that leave, are silent, or keep partitions for too long.

Source: Kafka's GroupMetadataManager.consumerGroupLeave, consumerGroupFenceMembers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups.consumer import downgrade
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_member import LEAVE_STATIC_EPOCH
from wirebroker.coordinator.groups.consumer.consumer_records import (
    current_record,
    epoch_record,
    member_tombstones,
    regex_tombstone,
    target_epoch_record,
)
from wirebroker.coordinator.groups.consumer.consumer_timers import (
    ClassicRejoin,
    ClassicSync,
    ConsumerRevocation,
    ConsumerSession,
    cancel_member_timers,
    restart_session,
)
from wirebroker.coordinator.groups.consumer.joining import checked_static_member, existing_group
from wirebroker.coordinator.groups.group_configs import consumer_session_timeout_ms
from wirebroker.coordinator.groups.member_timers import expect_revocation
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.consumer.prepared_step import PreparedAway
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment

logger = logging.getLogger(__name__)

_NEVER_ASSIGNED_MS: Final = 0
_REASONS: Final[Mapping[type[Any], str]] = {
    ConsumerSession: "its session has ended",
    ClassicRejoin: "it has not rejoined within its rebalance timeout",
    ClassicSync: "it has sent no SyncGroup within its rebalance timeout",
}


def leave(shard: ServingShard, body: Any, now: Moment, away: PreparedAway | None = None) -> Outcome:
    """Return the records of a member that leaves; a static one may leave for a while.

    `away` is the prepared record of a static member that leaves for a while, if there is one.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    group = existing_group(shard, body.group_id)
    if body.instance_id is None:
        return fence(shard, group, [group.member(body.member_id)], now)
    existing = group.static_member(body.instance_id)
    member = checked_static_member(existing, body.instance_id, body.member_id)
    if body.member_epoch == LEAVE_STATIC_EPOCH:
        if away is not None and away.existing is member:
            return Outcome([away.record])
        return Outcome([current_record(group.group_id, member.as_away())])
    return fence(shard, group, [member], now)


def fence(
    shard: ServingShard, group: ConsumerGroup, members: list[ConsumerMember], now: Moment
) -> Outcome:
    """Return the records that remove members, and raise the group's epoch or make it classic.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND: it cannot be made classic.
    """
    group_id, outcome = group.group_id, Outcome()
    if downgrade.is_possible(shard, group, members):
        outcome = downgrade.downgrade_without(shard, group, members, now)
    else:
        _remove_records(shard, group, members, outcome)
    for member in members:
        cancel_member_timers(shard.timers, group_id, member.member_id)

    def on_failure(error: Any, now: Moment) -> Outcome:
        # They are still members: restart their timers.
        del error
        for member in members:
            watch(shard, group, member, now)
        return Outcome()

    outcome.on_failure = on_failure
    return outcome


def _remove_records(
    shard: ServingShard, group: ConsumerGroup, members: list[ConsumerMember], outcome: Outcome
) -> None:
    group_id = group.group_id
    for member in members:
        outcome.records += member_tombstones(group_id, member.member_id)
    outcome.records += _regex_tombstones(group, members)
    topics = group.subscriptions.topics(without=members)
    metadata_hash = group.subscriptions.hash_of(topics, shard.topic_hashes)
    outcome.records.append(epoch_record(group_id, group.epoch + 1, metadata_hash))
    if len(members) == len(group.members):
        # Nothing is left to be assigned.
        record = target_epoch_record(group_id, group.epoch + 1, _NEVER_ASSIGNED_MS)
        outcome.records.append(record)


def _regex_tombstones(group: ConsumerGroup, members: list[ConsumerMember]) -> list[Any]:
    leaving: dict[str, int] = {}
    for member in members:
        if member.topic_regex:
            leaving[member.topic_regex] = leaving.get(member.topic_regex, 0) + 1
    return [
        regex_tombstone(group.group_id, regex)
        for regex, count in leaving.items()
        if group.subscriptions.regexes.get(regex) == count
    ]


def watch(shard: ServingShard, group: ConsumerGroup, member: ConsumerMember, now: Moment) -> None:
    """Start a member's timers, as after a load."""
    group_id = group.group_id
    if member.classic is None:
        timeout_ms = consumer_session_timeout_ms(shard.settings, shard.image, group_id)
    else:
        timeout_ms = member.classic.session_timeout_ms
    restart_session(shard.timers, group_id, member.member_id, timeout_ms, now)
    if member.revoking:
        event = ConsumerRevocation(group_id, member.member_id, member.epoch)
        expect_revocation(shard.timers, event, member.rebalance_timeout_ms, now)


def start_timers(shard: ServingShard, now: Moment) -> Steps[None]:
    """Start the timers of all members."""
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup):
            for member in group.members.values():
                watch(shard, group, member, now)
                yield


def on_expiry(
    shard: ServingShard, event: ConsumerSession | ClassicRejoin | ClassicSync, now: Moment
) -> Outcome:
    """Remove a member that is silent, or that has not rejoined or synced in time."""
    return _remove(shard, event.group_id, event.member_id, _REASONS[type(event)], now)


def on_revocation_timeout(shard: ServingShard, event: ConsumerRevocation, now: Moment) -> Outcome:
    """Remove a member that has kept partitions for too long."""
    group = shard.groups.get(event.group_id)
    member = group.members.get(event.member_id) if isinstance(group, ConsumerGroup) else None
    if member is None or member.epoch != event.epoch:
        return Outcome()
    return _remove(shard, event.group_id, event.member_id, "it kept revoked partitions", now)


def _remove(
    shard: ServingShard, group_id: str, member_id: str, reason: str, now: Moment
) -> Outcome:
    group = shard.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None:
        return Outcome()
    logger.info(
        "group %s removes member %s: %s", group_id, member_id, reason, extra=about_group(group_id)
    )
    try:
        return fence(shard, group, [member], now)
    except KafkaError as error:
        # It stays a member until an administrator removes it, as in Kafka.
        logger.warning(
            "group %s: cannot remove member %s: %s",
            group_id,
            member_id,
            error,
            extra=about_group(group_id),
        )
        return Outcome()
