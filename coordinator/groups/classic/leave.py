"""LeaveGroup: remove members, several at once from v3 on.

An administrator removes static members by `group.instance.id` with an empty member id.

Source: Kafka's GroupMetadataManager.classicGroupLeave; KIP-345.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic import rebalance
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.classic.classic_timers import SessionExpiry
from wirebroker.coordinator.outcome import Moment, Outcome, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
    from wirebroker.coordinator.groups.classic.classic_shard import ClassicShard


def leave(
    shard: ClassicShard, group_id: str, identities: Sequence[Any], token: Token, now: Moment
) -> Outcome:
    """Remove members; `identities` have member_id and group_instance_id.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID: there is no such group.
    """
    group = shard.classic(group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    outcome = Outcome()
    responses: list[dict[str, Any]] = []
    has_left = False
    for identity in identities:
        response = {
            "member_id": identity.member_id,
            "group_instance_id": identity.group_instance_id,
        }
        try:
            outcome = outcome.then(_remove(shard, group, identity))
            has_left = True
        except KafkaError as error:
            response["error_code"] = error.code
        responses.append(response)
    if has_left:
        outcome = outcome.then(_follow(shard, group, now))
    outcome.answer(token, {"members": responses})
    return outcome


def _remove(shard: ClassicShard, group: ClassicGroup, identity: Any) -> Outcome:
    member_id: str = identity.member_id
    if not member_id:
        static_id = group.roster.static_members.get(identity.group_instance_id)
        if static_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return rebalance.free_gradually(shard, group, static_id)
    if member_id in group.roster.pending_joins:
        group.roster.remove(member_id)
        shard.timers.cancel(SessionExpiry(group.group_id, member_id))
        return Outcome()
    group.roster.validate(member_id, identity.group_instance_id)
    return rebalance.free_gradually(shard, group, member_id)


def _follow(shard: ClassicShard, group: ClassicGroup, now: Moment) -> Outcome:
    if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        return rebalance.prepare(shard, group, now)
    return rebalance.complete_join_if_all_joined(shard, group, now)
