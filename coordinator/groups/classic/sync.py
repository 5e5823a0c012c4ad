"""SyncGroup: the leader sends the assignment, each member gets its part.

Source: Kafka's GroupMetadataManager.classicGroupSync.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic import rebalance
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.classic.classic_member import assigned
from wirebroker.coordinator.groups.classic.classic_timers import expect_heartbeat, sync_key
from wirebroker.coordinator.groups.classic.records import group_record
from wirebroker.coordinator.outcome import Moment, Outcome, Token

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
    from wirebroker.coordinator.groups.classic.classic_shard import ClassicShard


def sync(shard: ClassicShard, body: Any, token: Token, now: Moment) -> Outcome:
    """Handle a SyncGroup request.

    Raises:
        KafkaError: The error of the response.
    """
    group = shard.classic(body.group_id)
    if group is None or group.is_in(GroupState.EMPTY):
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    _validate(group, body)
    if group.is_in(GroupState.PREPARING_REBALANCE):
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    member = group.members[body.member_id]
    group.roster.pending_syncs.discard(member.member_id)
    if not group.roster.pending_syncs:
        shard.timers.cancel(sync_key(group.group_id))
    if group.is_in(GroupState.STABLE):
        outcome = Outcome()
        outcome.answer(token, _response(group, member.assignment))
        return outcome
    outcome = Outcome()
    if member.awaiting_sync is not None:
        # A retry; Kafka would never respond to the first request.
        outcome.answer(member.awaiting_sync, {"error_code": ErrorCode.REBALANCE_IN_PROGRESS})
    member.awaiting_sync = token
    if group.leader != member.member_id:
        return outcome
    return outcome.then(_assign(shard, group, assigned(body.assignments), now))


def _validate(group: ClassicGroup, body: Any) -> None:
    group.roster.validate(body.member_id, body.group_instance_id)
    if body.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    checked = [(body.protocol_type, group.protocol_type)]
    # In a consumer group, JoinGroup returns the first protocol of the member. If the group becomes
    # classic before SyncGroup, all members have to rejoin; this error would end the client.
    if not group.is_in(GroupState.PREPARING_REBALANCE):
        checked.append((body.protocol_name, group.protocol))
    for requested, current in checked:
        if requested is not None and current is not None and requested != current:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _assign(
    shard: ClassicShard, group: ClassicGroup, assignments: dict[str, bytes], now: Moment
) -> Outcome:
    """Record the leader's assignment; other members get an empty one."""
    record = group_record(group, protocol=group.protocol, assignments=assignments)
    waiting = [member for member in group.members.values() if member.awaiting_sync is not None]
    outcome = Outcome([record])
    for member in waiting:
        assignment = assignments.get(member.member_id, b"")
        outcome.answer(member.awaiting_sync, _response(group, assignment))
        member.awaiting_sync = None
        # The session was suspended while it waited.
        expect_heartbeat(shard.timers, group.group_id, member, now)

    def on_failure(error: ErrorCode, now: Moment) -> Outcome:
        failed = Outcome()
        for member, answer in zip(waiting, outcome.answers, strict=True):
            group.members[member.member_id].awaiting_sync = answer[0]
        rebalance.answer_syncs_with_error(shard, group, error, failed, now)
        return failed.then(rebalance.rebalance_or_complete(shard, group, now))

    outcome.on_failure = on_failure
    return outcome


def _response(group: ClassicGroup, assignment: bytes) -> dict[str, Any]:
    return {
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "assignment": assignment,
    }
