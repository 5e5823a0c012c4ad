"""Heartbeat: a member extends its session and learns whether to rejoin.

Source: Kafka's GroupMetadataManager.classicGroupHeartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.classic.classic_timers import expect_heartbeat
from wirebroker.coordinator.outcome import Moment, Outcome, Token

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_shard import ClassicShard


def heartbeat(shard: ClassicShard, body: Any, token: Token, now: Moment) -> Outcome:
    """Handle a Heartbeat request.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    group = shard.classic(body.group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.roster.validate(body.member_id, body.group_instance_id)
    if body.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    member = group.members[body.member_id]
    expect_heartbeat(shard.timers, group.group_id, member, now)
    must_rejoin = group.is_in(GroupState.PREPARING_REBALANCE)
    outcome = Outcome()
    error = ErrorCode.REBALANCE_IN_PROGRESS if must_rejoin else ErrorCode.NONE
    outcome.answer(token, {"error_code": error})
    return outcome
