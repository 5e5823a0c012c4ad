"""Heartbeats that repeat an earlier one of their member and again change nothing.

Most heartbeats have the same bytes as the member's last one. If nothing that the response depends
on has changed since, only the member's session is restarted, and the response has the same bytes.

    remember   after a heartbeat without records and without changes
    repeat     the response, or None: the heartbeat is served as any other
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_timers import restart_session
from wirebroker.coordinator.groups.consumer.remembered_heartbeat import RememberedHeartbeat
from wirebroker.coordinator.groups.group_configs import consumer_session_timeout_ms

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment

_NO_TIMEOUT: Final = -1
# Repeated heartbeats of a group beyond one for each of its members: those of former epochs.
_MOST_OLD: Final = 16


def states_nothing(body: Any) -> bool:
    """Return whether a heartbeat of a current member states no change."""
    return (
        body.member_epoch > 0
        and body.rebalance_timeout_ms == _NO_TIMEOUT
        and body.subscribed_topic_names is None
        and getattr(body, "subscribed_topic_regex", None) is None
        and body.topic_partitions is None
        and body.server_assignor is None
        and body.rack_id is None
    )


def remember(
    shard: ServingShard,
    body: Any,
    content: bytes,
    client: tuple[str | None, str],
    response: bytes,
) -> None:
    """Remember a heartbeat that stated nothing and changed nothing.

    Args:
        shard: The group's shard.
        body: The decoded heartbeat.
        content: Its bytes.
        client: The client's id and address.
        response: The bytes of its response.
    """
    group = shard.groups.get(body.group_id)
    member = group.members.get(body.member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None or member.epoch != body.member_epoch:
        return
    if not _is_at_rest(shard, group, member):
        return
    if len(group.repeated) >= len(group.members) + _MOST_OLD:
        group.repeated.clear()
    timeout_ms = consumer_session_timeout_ms(shard.settings, shard.image, group.group_id)
    group.repeated[content] = RememberedHeartbeat(member, client, shard, timeout_ms, response)


def repeat(
    shard: ServingShard,
    group_id: str,
    content: bytes,
    client: tuple[str | None, str],
    now: Moment,
) -> bytes | None:
    """Restart the session of a member that repeats a heartbeat; return the response's bytes."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return None
    repeated = group.repeated.get(content)
    if repeated is None or repeated.client != client:
        return None
    member = repeated.member
    is_same = repeated.image is shard.image and repeated.settings is shard.settings
    # A changed member is another object.
    if not is_same or group.members.get(member.member_id) is not member:
        return None
    if not _is_at_rest(shard, group, member):
        return None
    restart_session(shard.timers, group_id, member.member_id, repeated.timeout_ms, now)
    return repeated.response


def _is_at_rest(shard: ServingShard, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether a heartbeat without changes has no effect but on the session."""
    return (
        group.checked_topics is shard.image.topics
        and group.epoch == group.assignment_epoch
        and member.is_reconciled_to(group.assignment_epoch)
        # These are searched again after some time.
        and not group.subscriptions.regexes
    )
