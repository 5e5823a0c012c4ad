"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, by the kind of their group.

Members of the classic protocol may be in a consumer group, during an online migration (KIP-848).

Source: Kafka's GroupMetadataManager.classicGroupJoin, classicGroupSync, classicGroupHeartbeat and
classicGroupLeave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups.classic import heartbeat as classic_heartbeat
from wirebroker.coordinator.groups.classic import join as classic_join
from wirebroker.coordinator.groups.classic import leave as classic_leave
from wirebroker.coordinator.groups.classic import sync as classic_sync
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from wirebroker.coordinator.groups.classic.join import Join
    from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.coordinator.outcome import Moment, Token


def join(shard: GroupShard, request: Join, token: Token, now: Moment) -> Outcome:
    """Handle a JoinGroup request whose group id and session timeout are valid."""
    group = _consumer_group(shard, request.body.group_id)
    if group is None or group.is_empty:
        return classic_join.join(shard, request, token, now)
    try:
        outcome: Outcome = _classic_members().join(shard, group, request, token, now)
    except KafkaError as error:
        outcome = Outcome()
        outcome.answer(token, {"member_id": "", "error_code": error.code})
    return outcome


def sync(shard: GroupShard, body: Any, token: Token, now: Moment) -> Outcome:
    """Handle a SyncGroup request.

    Raises:
        KafkaError: The error of the response.
    """
    group = _consumer_group(shard, body.group_id)
    if group is None or group.is_empty:
        return classic_sync.sync(shard, body, token, now)
    outcome: Outcome = _classic_members().sync(shard, group, body, token, now)
    return outcome


def heartbeat(shard: GroupShard, body: Any, token: Token, now: Moment) -> Outcome:
    """Handle a Heartbeat request.

    Raises:
        KafkaError: The error of the response.
    """
    group = _consumer_group(shard, body.group_id)
    if group is None:
        return classic_heartbeat.heartbeat(shard, body, token, now)
    outcome: Outcome = _classic_members().heartbeat(shard, group, body, token, now)
    return outcome


def leave(
    shard: GroupShard, group_id: str, identities: Sequence[Any], token: Token, now: Moment
) -> Outcome:
    """Handle a LeaveGroup request.

    Raises:
        KafkaError: The error of the response.
    """
    group = _consumer_group(shard, group_id)
    if group is None:
        return classic_leave.leave(shard, group_id, identities, token, now)
    outcome: Outcome = _classic_members().leave(shard, group, identities, token, now)
    return outcome


def _consumer_group(shard: GroupShard, group_id: str) -> ConsumerGroup | None:
    group = shard.groups.get(group_id)
    if group is None or group.group_type is not GroupType.CONSUMER:
        return None
    return cast("ConsumerGroup", group)


def _classic_members() -> ModuleType:
    """Import late: see kinds.py."""
    from wirebroker.coordinator.groups.consumer import classic_members  # noqa: PLC0415

    return classic_members
