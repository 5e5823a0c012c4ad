"""A static member that comes back takes the place of its former self (KIP-345).

While the group is Stable and the chosen protocol stays the same, nobody else notices: the group is
recorded with the new member id and goes on in its generation. Whoever waits in the name of the
former incarnation is fenced.

The answer to a leader: from v9 on it is told that it leads and that its assignment stands
(skip_assignment, KIP-814); before, that its former id leads, so that it assigns nothing.

Source: Kafka's GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic import rebalance
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.classic.classic_timers import SessionExpiry, expect_heartbeat
from wirebroker.coordinator.groups.classic.records import group_record
from wirebroker.coordinator.outcome import Moment, Outcome

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
    from wirebroker.coordinator.groups.classic.classic_member import Member
    from wirebroker.coordinator.groups.classic.join import Join
    from wirebroker.coordinator.groups.shard.shard import GroupShard

FIRST_SKIP_ASSIGNMENT_VERSION = 9


def replace_static_member(
    shard: GroupShard,
    group: ClassicGroup,
    request: Join,
    new_id: str,
    moment: Moment,
) -> Outcome:
    """Let a new incarnation join in the place of the one that the group knows."""
    body = request.body
    former = group.members[group.static_members[body.group_instance_id]]
    former_leader = group.leader
    # In Stable nobody waits, so nothing of this is lost if the append fails.
    outcome = _fence(former)
    member = group.replace_static_member(body.group_instance_id, new_id)
    expect_heartbeat(shard.timers, group.group_id, member, moment)
    group.update(
        member,
        protocols=request.protocols,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=body.session_timeout_ms,
        awaiting_join=request.token,
    )
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        # The leader may be assigning to the former id already.
        return outcome.then(rebalance.prepare(shard, group, moment))
    if not group.is_in(GroupState.STABLE):
        return outcome.then(rebalance.complete_join_if_all_joined(shard, group, moment))
    if group.protocol != group.select_protocol():
        return outcome.then(rebalance.rebalance_or_complete(shard, group, moment))
    group.await_join(member, None)
    outcome.records.append(group_record(group, protocol=group.protocol))
    response = rebalance.join_response(group, member)
    if request.version >= FIRST_SKIP_ASSIGNMENT_VERSION:
        response["skip_assignment"] = group.leader == new_id
    else:
        response |= {"leader": former_leader, "members": []}
    outcome.answer(request.token, response)

    def on_failure(error: ErrorCode, moment: Moment) -> Outcome:
        group.update(
            group.members[new_id],
            protocols=former.protocols,
            rebalance_timeout_ms=former.rebalance_timeout_ms,
            session_timeout_ms=former.session_timeout_ms,
            awaiting_join=None,
        )
        restored = group.replace_static_member(body.group_instance_id, former.member_id)
        shard.timers.cancel(SessionExpiry(group.group_id, new_id))
        expect_heartbeat(shard.timers, group.group_id, restored, moment)
        failed = Outcome()
        failed.answer(
            request.token,
            {
                "generation_id": group.generation,
                "protocol_type": group.protocol_type,
                "protocol_name": group.protocol,
                "leader": former_leader,
                "member_id": "",
                "error_code": error,
            },
        )
        return failed

    outcome.on_failure = on_failure
    return outcome


def _fence(member: Member) -> Outcome:
    """Tell whoever waits for a member that another incarnation has taken its place."""
    outcome = Outcome()
    error = ErrorCode.FENCED_INSTANCE_ID
    if member.awaiting_join is not None:
        outcome.answer(member.awaiting_join, {"member_id": member.member_id, "error_code": error})
    if member.awaiting_sync is not None:
        outcome.answer(member.awaiting_sync, {"error_code": error})
    return outcome
