"""JoinGroup: become a member, or stay one in a rebalance.

    member id      group             result
    none           unknown           the group is created (and recorded), then as below
    none           any               v4+: MEMBER_ID_REQUIRED with a new id (KIP-394)
                                     v0-3, or with a group.instance.id: member, rebalance
    none, static   knows instance    the new incarnation replaces the member (KIP-345)
    pending        any               member, rebalance
    a member's     Preparing         waits with the others
    a member's     Completing        same protocols: the generation again; else rebalance
    a member's     Stable            a follower with the same protocols: likewise; else rebalance
    any other                        UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID

Most responses wait for the end of the join phase.

A static leader that returns without a rebalance learns from v9 on that its assignment is valid
(skip_assignment, KIP-814). Before v9 the response names its former id as the leader, so that it
assigns nothing.

Source: Kafka's GroupMetadataManager.classicGroupJoin,
updateStaticMemberThenRebalanceOrCompleteJoin; JoinGroupRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic import rebalance
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup, GroupState
from wirebroker.coordinator.groups.classic.classic_member import Member, protocols_of
from wirebroker.coordinator.groups.classic.classic_timers import SessionExpiry, expect_heartbeat
from wirebroker.coordinator.groups.classic.records import creation_record, group_record
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from wirebroker.coordinator.outcome import Moment, Outcome, Token

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_member import Protocols
    from wirebroker.coordinator.groups.classic.classic_shard import ClassicShard
    from wirebroker.coordinator.groups.group import Group

# First version in which a new member needs an id.
FIRST_MEMBER_ID_VERSION = 4
# First version with skip_assignment.
FIRST_SKIP_ASSIGNMENT_VERSION = 9
# Kept part of a client id. With the uuid of a member id, a longer one could exceed a string.
_LONGEST_CLIENT_ID_BYTES: Final = 255


class Join(NamedTuple):
    """A JoinGroup request and its client."""

    body: Any
    version: int
    client_id: str
    client_host: str
    protocols: Protocols
    rebalance_timeout_ms: int
    # The client's access rights, for the regular expressions of other members.
    context: Any = None
    token: Token = None

    @classmethod
    def of(
        cls, body: Any, *, version: int, client_id: str, client_host: str, context: Any = None
    ) -> Join:
        """Return the request of a decoded body."""
        # v0 has no rebalance timeout.
        timeout_ms = body.session_timeout_ms if version == 0 else body.rebalance_timeout_ms
        protocols = protocols_of(body.protocols)
        return cls(body, version, client_id, client_host, protocols, timeout_ms, context)


def join(shard: ClassicShard, request: Join, token: Token, now: Moment) -> Outcome:
    """Handle a request whose group id and session timeout are valid."""
    request = request._replace(token=token)
    body = request.body
    existing = shard.groups.get(body.group_id)
    if isinstance(existing, ClassicGroup):
        return _join_group(shard, existing, request, now)
    if existing is not None and not _may_become_classic(existing):
        return _refuse(request.token, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if body.member_id:
        return _refuse(request.token, body.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    group = ClassicGroup(body.group_id, timestamp_ms=now.wall_ms)
    return _create(shard, group, request, now)


def _create(shard: ClassicShard, group: ClassicGroup, request: Join, now: Moment) -> Outcome:
    former = shard.groups.get(group.group_id)
    tombstones = [] if former is None else former.tombstones()
    shard.groups[group.group_id] = group
    outcome = _join_group(shard, group, request, now)
    assert not outcome.records, "the first join phase has a delay"

    def on_failure(error: ErrorCode, _now: Moment) -> Outcome:
        group.cancel_timers(shard.timers)
        if former is None:
            del shard.groups[group.group_id]
        else:
            shard.groups[group.group_id] = former
        return _refuse(request.token, "", error)

    return Outcome([*tombstones, creation_record(group)], outcome.answers, on_failure)


def _may_become_classic(group: Group) -> bool:
    """Return whether a classic group may replace this one: an empty one of these kinds."""
    return group.group_type in {GroupType.CONSUMER, GroupType.STREAMS} and group.is_empty


def _join_group(shard: ClassicShard, group: ClassicGroup, request: Join, now: Moment) -> Outcome:
    member_id: str = request.body.member_id
    if not _has_room(shard, group, member_id):
        group.roster.remove(member_id)
        shard.timers.cancel(SessionExpiry(group.group_id, member_id))
        return _refuse(request.token, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports(request.body.protocol_type, request.protocols):
        return _refuse(request.token, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not member_id:
        return _join_without_id(shard, group, request, now)
    if member_id in group.roster.pending_joins:
        if request.body.group_instance_id is not None:
            # Kafka fails an assertion.
            return _refuse(request.token, "", ErrorCode.UNKNOWN_SERVER_ERROR)
        return _add(shard, group, request, member_id, now)
    return _rejoin(shard, group, request, now)


def _has_room(shard: ClassicShard, group: ClassicGroup, member_id: str) -> bool:
    """Return whether group.max.size allows this member.

    During a rebalance the members that have rejoined count, also after the limit was lowered.
    """
    limit = shard.settings.max_size
    member = group.members.get(member_id)
    if group.is_in(GroupState.PREPARING_REBALANCE):
        waits_already = member is not None and member.awaiting_join is not None
        return waits_already or group.roster.awaiting_join_count < limit
    if group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return member is not None or len(group.members) < limit
    return True


def shortened(client_id: str) -> str:
    """Return the kept part of a client or instance id."""
    return client_id.encode()[:_LONGEST_CLIENT_ID_BYTES].decode(errors="ignore")


def _join_without_id(
    shard: ClassicShard, group: ClassicGroup, request: Join, now: Moment
) -> Outcome:
    body = request.body
    instance: str | None = body.group_instance_id
    named = request.client_id if instance is None else instance
    new_id = f"{shortened(named)}-{shard.new_uuid()}"
    if instance is not None:
        if instance in group.roster.static_members:
            return _replace_static_member(shard, group, request, new_id, now)
        return _add(shard, group, request, new_id, now)
    if request.version < FIRST_MEMBER_ID_VERSION:
        return _add(shard, group, request, new_id, now)
    group.roster.pending_joins.add(new_id)
    event = SessionExpiry(group.group_id, new_id)
    shard.timers.set(event, now.monotonic_ms + body.session_timeout_ms, event)
    return _refuse(request.token, new_id, ErrorCode.MEMBER_ID_REQUIRED)


def _add(
    shard: ClassicShard,
    group: ClassicGroup,
    request: Join,
    member_id: str,
    now: Moment,
) -> Outcome:
    body = request.body
    member = Member(
        member_id,
        group_instance_id=body.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=body.session_timeout_ms,
        protocols=request.protocols,
    )
    member.is_new = True
    if group.is_in(GroupState.PREPARING_REBALANCE) and group.previous_state is GroupState.EMPTY:
        group.has_new_member = True
    group.add(member, protocol_type=body.protocol_type, awaiting_join=request.token)
    # It sends no heartbeats while it waits, and may be lost unnoticed.
    wait_ms = NEW_MEMBER_JOIN_TIMEOUT_MS
    expect_heartbeat(shard.timers, group.group_id, member, now, wait_ms)
    return rebalance.rebalance_or_complete(shard, group, now)


def _rejoin(shard: ClassicShard, group: ClassicGroup, request: Join, now: Moment) -> Outcome:
    body = request.body
    try:
        group.roster.validate(body.member_id, body.group_instance_id)
    except KafkaError as error:
        return _refuse(request.token, body.member_id, error.code)
    member = group.members[body.member_id]
    is_same = member.protocols == request.protocols
    if group.is_in(GroupState.COMPLETING_REBALANCE) and is_same:
        # The response may have been lost.
        return _answer_generation(group, member, request.token)
    if group.is_in(GroupState.STABLE) and is_same and group.leader != member.member_id:
        # A leader rejoins to cause a new assignment.
        return _answer_generation(group, member, request.token)
    outcome = Outcome()
    if member.awaiting_join is not None:
        # A retry; Kafka would never respond to the first request.
        response = {"member_id": member.member_id, "error_code": ErrorCode.REBALANCE_IN_PROGRESS}
        outcome.answer(member.awaiting_join, response)
    group.roster.update(
        member,
        protocols=request.protocols,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=body.session_timeout_ms,
        awaiting_join=request.token,
    )
    return outcome.then(rebalance.rebalance_or_complete(shard, group, now))


def _replace_static_member(
    shard: ClassicShard,
    group: ClassicGroup,
    request: Join,
    new_id: str,
    now: Moment,
) -> Outcome:
    body = request.body
    former = group.members[group.roster.static_members[body.group_instance_id]]
    former_leader = group.leader
    # In Stable there are no waiters that a failed append would lose.
    outcome = _fence(former)
    member = group.roster.replace_static_member(body.group_instance_id, new_id)
    expect_heartbeat(shard.timers, group.group_id, member, now)
    group.roster.update(
        member,
        protocols=request.protocols,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=body.session_timeout_ms,
        awaiting_join=request.token,
    )
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        # The leader may be assigning to the former id.
        return outcome.then(rebalance.prepare(shard, group, now))
    if not group.is_in(GroupState.STABLE):
        return outcome.then(rebalance.complete_join_if_all_joined(shard, group, now))
    if group.protocol != group.roster.select_protocol():
        return outcome.then(rebalance.rebalance_or_complete(shard, group, now))
    group.roster.await_join(member, None)
    outcome.records.append(group_record(group, protocol=group.protocol))
    response = rebalance.join_response(group, member)
    if request.version >= FIRST_SKIP_ASSIGNMENT_VERSION:
        response["skip_assignment"] = group.leader == new_id
    else:
        response |= {"leader": former_leader, "members": []}
    outcome.answer(request.token, response)

    def on_failure(error: ErrorCode, now: Moment) -> Outcome:
        group.roster.update(
            group.members[new_id],
            protocols=former.protocols,
            rebalance_timeout_ms=former.rebalance_timeout_ms,
            session_timeout_ms=former.session_timeout_ms,
            awaiting_join=None,
        )
        restored = group.roster.replace_static_member(body.group_instance_id, former.member_id)
        shard.timers.cancel(SessionExpiry(group.group_id, new_id))
        expect_heartbeat(shard.timers, group.group_id, restored, now)
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
    outcome = Outcome()
    error = ErrorCode.FENCED_INSTANCE_ID
    if member.awaiting_join is not None:
        outcome.answer(member.awaiting_join, {"member_id": member.member_id, "error_code": error})
    if member.awaiting_sync is not None:
        outcome.answer(member.awaiting_sync, {"error_code": error})
    return outcome


def _answer_generation(group: ClassicGroup, member: Member, token: Token) -> Outcome:
    outcome = Outcome()
    outcome.answer(token, rebalance.join_response(group, member))
    return outcome


def _refuse(token: Token, member_id: str, error: ErrorCode) -> Outcome:
    outcome = Outcome()
    outcome.answer(token, {"member_id": member_id, "error_code": error})
    return outcome
