"""JoinGroup: becoming a member, or staying one through a rebalance.

    member id      group             comes of it
    none           unknown           the group is created (and recorded), then as below
    none           any               v4+: an id is given out, MEMBER_ID_REQUIRED (KIP-394)
                                     v0-3, or with a group.instance.id: member, rebalance
    none, static   knows instance    the new incarnation takes the member's place (KIP-345)
    pending        any               member, rebalance
    a member's     Preparing         waits with the others
    a member's     Completing        same protocols: told the generation again; else rebalance
    a member's     Stable            a follower with the same protocols: likewise; else rebalance
    any other                        UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID

Most answers come later, when the join phase ends.

Source: Kafka's GroupMetadataManager.classicGroupJoin and what it calls; JoinGroupRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic import rebalance
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup, GroupState
from wirebroker.coordinator.groups.classic.classic_member import Member, protocols_of
from wirebroker.coordinator.groups.classic.classic_timers import SessionExpiry, expect_heartbeat
from wirebroker.coordinator.groups.classic.records import creation_record
from wirebroker.coordinator.groups.classic.static_member import replace_static_member
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from wirebroker.coordinator.outcome import Moment, Outcome, Token

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_member import Protocols
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.shard.shard import GroupShard

# From this version on a new member needs an id before it may join.
FIRST_MEMBER_ID_VERSION = 4
# Of a client id in the memory of a member, and in its member id. A longer one would not fit into a
# response together with the uuid, and would stay until the session times out.
_LONGEST_CLIENT_ID_BYTES: Final = 255


class Join(NamedTuple):
    """A JoinGroup request and who sent it."""

    body: Any
    version: int
    client_id: str
    client_host: str
    protocols: Protocols
    rebalance_timeout_ms: int
    # Who waits for the answer.
    token: Token = None

    @classmethod
    def of(cls, body: Any, *, version: int, client_id: str, client_host: str) -> Join:
        """Make one of a decoded body."""
        # v0 has no timeout of its own for this.
        timeout_ms = body.session_timeout_ms if version == 0 else body.rebalance_timeout_ms
        protocols = protocols_of(body.protocols)
        return cls(body, version, client_id, client_host, protocols, timeout_ms)


def join(shard: GroupShard, request: Join, token: Token, moment: Moment) -> Outcome:
    """Handle a JoinGroup request whose group id and session timeout are valid."""
    request = request._replace(token=token)
    body = request.body
    known = shard.groups.get(body.group_id)
    if isinstance(known, ClassicGroup):
        return _join_group(shard, known, request, moment)
    if known is not None and not _may_become_classic(known):
        return _refuse(request.token, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if body.member_id:
        return _refuse(request.token, body.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    group = ClassicGroup(body.group_id, timestamp_ms=moment.wall_ms)
    return _create(shard, group, request, moment)


def _create(shard: GroupShard, group: ClassicGroup, request: Join, moment: Moment) -> Outcome:
    """Let the first member in, and record that the group exists."""
    record = creation_record(group)
    former = shard.groups.get(group.group_id)
    shard.groups[group.group_id] = group
    outcome = _join_group(shard, group, request, moment)
    assert not outcome.records, "the first join phase has a delay"

    def on_failure(error: ErrorCode, _moment: Moment) -> Outcome:
        group.cancel_timers(shard.timers)
        if former is None:
            del shard.groups[group.group_id]
        else:
            shard.groups[group.group_id] = former
        return _refuse(request.token, "", error)

    return Outcome([record], outcome.answers, on_failure)


def _may_become_classic(group: Group) -> bool:
    """Tell whether a classic member may take over the id and offsets of another kind (KIP-848)."""
    return group.group_type is GroupType.CONSUMER and group.is_empty


def _join_group(shard: GroupShard, group: ClassicGroup, request: Join, moment: Moment) -> Outcome:
    member_id: str = request.body.member_id
    if not _has_room(shard, group, member_id):
        group.remove(member_id)
        shard.timers.cancel(SessionExpiry(group.group_id, member_id))
        return _refuse(request.token, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports(request.body.protocol_type, request.protocols):
        return _refuse(request.token, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not member_id:
        return _join_without_id(shard, group, request, moment)
    if member_id in group.pending_joins:
        if request.body.group_instance_id is not None:
            # Kafka fails on an assertion: only dynamic members are given an id to come back with.
            return _refuse(request.token, "", ErrorCode.UNKNOWN_SERVER_ERROR)
        return _add(shard, group, request, member_id, moment)
    return _rejoin(shard, group, request, moment)


def _has_room(shard: GroupShard, group: ClassicGroup, member_id: str) -> bool:
    """Tell whether group.max.size allows this member.

    During a rebalance those count that have rejoined: the last to come are too many, also when
    the limit has been lowered.
    """
    limit = shard.settings.max_size
    member = group.members.get(member_id)
    if group.is_in(GroupState.PREPARING_REBALANCE):
        waits_already = member is not None and member.awaiting_join is not None
        return waits_already or group.awaiting_join_count < limit
    if group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return member is not None or len(group.members) < limit
    return True


def shortened(client_id: str) -> str:
    """Return the part of a client id, or of an instance id, that is kept of a member."""
    return client_id.encode()[:_LONGEST_CLIENT_ID_BYTES].decode(errors="ignore")


def _join_without_id(
    shard: GroupShard, group: ClassicGroup, request: Join, moment: Moment
) -> Outcome:
    body = request.body
    instance: str | None = body.group_instance_id
    named = request.client_id if instance is None else instance
    new_id = f"{shortened(named)}-{shard.new_uuid()}"
    if instance is not None:
        if instance in group.static_members:
            return replace_static_member(shard, group, request, new_id, moment)
        return _add(shard, group, request, new_id, moment)
    if request.version < FIRST_MEMBER_ID_VERSION:
        return _add(shard, group, request, new_id, moment)
    group.pending_joins.add(new_id)
    event = SessionExpiry(group.group_id, new_id)
    shard.timers.set(event, moment.monotonic_ms + body.session_timeout_ms, event)
    return _refuse(request.token, new_id, ErrorCode.MEMBER_ID_REQUIRED)


def _add(
    shard: GroupShard,
    group: ClassicGroup,
    request: Join,
    member_id: str,
    moment: Moment,
) -> Outcome:
    """Take a member in, which makes a rebalance."""
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
    # It sends no heartbeats while it waits, and if it is gone we may not notice.
    wait_ms = NEW_MEMBER_JOIN_TIMEOUT_MS
    expect_heartbeat(shard.timers, group.group_id, member, moment, wait_ms)
    return rebalance.rebalance_or_complete(shard, group, moment)


def _rejoin(shard: GroupShard, group: ClassicGroup, request: Join, moment: Moment) -> Outcome:
    """Let a member join again."""
    body = request.body
    try:
        group.validate_member(body.member_id, body.group_instance_id)
    except KafkaError as error:
        return _refuse(request.token, body.member_id, error.code)
    member = group.members[body.member_id]
    is_same = member.protocols == request.protocols
    if group.is_in(GroupState.COMPLETING_REBALANCE) and is_same:
        # The answer got lost, perhaps.
        return _tell_generation(group, member, request.token)
    if group.is_in(GroupState.STABLE) and is_same and group.leader != member.member_id:
        # A leader rejoins because it has seen something change that concerns the assignment.
        return _tell_generation(group, member, request.token)
    outcome = Outcome()
    if member.awaiting_join is not None:
        # The member has sent its request again; Kafka would leave the first one unanswered.
        response = {"member_id": member.member_id, "error_code": ErrorCode.REBALANCE_IN_PROGRESS}
        outcome.answer(member.awaiting_join, response)
    group.update(
        member,
        protocols=request.protocols,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=body.session_timeout_ms,
        awaiting_join=request.token,
    )
    return outcome.then(rebalance.rebalance_or_complete(shard, group, moment))


def _tell_generation(group: ClassicGroup, member: Member, token: Token) -> Outcome:
    outcome = Outcome()
    outcome.answer(token, rebalance.join_response(group, member))
    return outcome


def _refuse(token: Token, member_id: str, error: ErrorCode) -> Outcome:
    outcome = Outcome()
    outcome.answer(token, {"member_id": member_id, "error_code": error})
    return outcome
