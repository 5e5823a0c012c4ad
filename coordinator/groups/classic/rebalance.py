"""Rebalances of classic groups, and their timers.

    prepare          all members must rejoin; a new group waits for more of them
    complete_join    the others are removed; members get generation and leader
    (sync.py)        the leader's assignment is recorded: Stable

Source: Kafka's GroupMetadataManager, the methods about classic groups; KIP-134.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic.classic_group import (
    ClassicGroup,
    GroupState,
    next_generation,
)
from wirebroker.coordinator.groups.classic.classic_timers import (
    InitialDelay,
    JoinTimeout,
    SessionExpiry,
    SyncTimeout,
    expect_heartbeat,
    join_key,
    sync_key,
)
from wirebroker.coordinator.groups.classic.records import group_record
from wirebroker.coordinator.outcome import Moment, Outcome

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.classic.classic_member import Member
    from wirebroker.coordinator.groups.classic.classic_shard import ClassicShard

logger = logging.getLogger(__name__)


# -- beginning -------------------------------------------------------------------------------


def rebalance_or_complete(shard: ClassicShard, group: ClassicGroup, now: Moment) -> Outcome:
    """Begin a rebalance, or end its join phase if all have joined."""
    if group.can_rebalance:
        return prepare(shard, group, now)
    return complete_join_if_all_joined(shard, group, now)


def prepare(shard: ClassicShard, group: ClassicGroup, now: Moment) -> Outcome:
    """Begin a rebalance; members that wait for an assignment must rejoin."""
    outcome = Outcome()
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        answer_syncs_with_error(shard, group, ErrorCode.REBALANCE_IN_PROGRESS, outcome, now)
    group.roster.pending_syncs.clear()
    shard.timers.cancel(sync_key(group.group_id))
    is_initial = group.is_in(GroupState.EMPTY)
    group.transition(GroupState.PREPARING_REBALANCE, timestamp_ms=now.wall_ms)
    logger.info(
        "group %s prepares a rebalance after generation %d (%s)",
        group.group_id,
        group.generation,
        group.previous_state,
        extra=about_group(group.group_id),
    )
    if is_initial:
        delay_ms = shard.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.roster.rebalance_timeout_ms - delay_ms, 0)
        event = InitialDelay(group.group_id, delay_ms, remaining_ms)
        shard.timers.set(join_key(group.group_id), now.monotonic_ms + delay_ms, event)
        return outcome
    if group.roster.have_all_joined:
        return outcome.then(complete_join(shard, group, now))
    _await_joins(shard, group, now)
    return outcome


def answer_syncs_with_error(
    shard: ClassicShard, group: ClassicGroup, error: ErrorCode, outcome: Outcome, now: Moment
) -> None:
    """Remove all assignments, and respond to waiting members with an error."""
    assert group.is_in(GroupState.COMPLETING_REBALANCE), group.state
    for member in group.members.values():
        member.assignment = b""
        if member.awaiting_sync is not None:
            outcome.answer(member.awaiting_sync, {"error_code": error})
            member.awaiting_sync = None
            expect_heartbeat(shard.timers, group.group_id, member, now)


# -- the end of the join phase ---------------------------------------------------------------


def complete_join_if_all_joined(shard: ClassicShard, group: ClassicGroup, now: Moment) -> Outcome:
    """End the join phase if all have joined; a new group's initial delay must pass."""
    if not group.is_in(GroupState.PREPARING_REBALANCE):
        return Outcome()
    if group.previous_state is not GroupState.EMPTY and group.roster.have_all_joined:
        return complete_join(shard, group, now)
    return Outcome()


def complete_join(shard: ClassicShard, group: ClassicGroup, now: Moment) -> Outcome:
    """End the join phase: remove missing dynamic members, respond to the others."""
    shard.timers.cancel(join_key(group.group_id))
    missing = [member for member in group.members.values() if member.awaiting_join is None]
    for member in missing:
        # Static members stay until their sessions end (KIP-345).
        if member.group_instance_id is None:
            group.roster.remove(member.member_id)
            shard.timers.cancel(SessionExpiry(group.group_id, member.member_id))
    if not group.members:
        return _become_empty(group, now)
    if not group.roster.elect_joined_leader():
        # No member has rejoined.
        _await_joins(shard, group, now)
        return Outcome()
    group.begin_generation(timestamp_ms=now.wall_ms)
    outcome = Outcome()
    for member in group.members.values():
        token = member.awaiting_join
        if token is not None:
            outcome.answer(token, join_response(group, member))
            group.roster.await_join(member, None)
        expect_heartbeat(shard.timers, group.group_id, member, now)
        member.is_new = False
        group.roster.pending_syncs.add(member.member_id)
    event = SyncTimeout(group.group_id, group.generation)
    at_ms = now.monotonic_ms + group.roster.rebalance_timeout_ms
    shard.timers.set(sync_key(group.group_id), at_ms, event)
    logger.info(
        "group %s is in generation %d with %d members (%s)",
        group.group_id,
        group.generation,
        len(group.members),
        group.protocol,
        extra=about_group(group.group_id),
    )
    return outcome


def _become_empty(group: ClassicGroup, now: Moment) -> Outcome:
    record = group_record(
        group,
        generation=next_generation(group.generation),
        protocol=None,
        timestamp_ms=now.wall_ms,
    )

    def on_failure(_error: ErrorCode, _now: Moment) -> Outcome:
        group.become_empty_unrecorded(timestamp_ms=now.wall_ms)
        return Outcome()

    return Outcome([record], on_failure=on_failure)


def join_response(group: ClassicGroup, member: Member) -> dict[str, Any]:
    """Return a member's JoinGroup response; the leader's lists all members."""
    is_leader = group.leader == member.member_id
    return {
        "generation_id": group.generation,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "leader": group.leader,
        "member_id": member.member_id,
        "members": members_for_leader(group) if is_leader else [],
    }


def members_for_leader(group: ClassicGroup) -> list[dict[str, Any]]:
    """Return all members with their metadata for the chosen protocol."""
    protocol = group.protocol
    assert protocol is not None, "a generation has a protocol"
    return [
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "metadata": member.metadata(protocol),
        }
        for member in group.members.values()
    ]


# -- removed members -------------------------------------------------------------------------


def free_gradually(shard: ClassicShard, group: ClassicGroup, member_id: str) -> Outcome:
    """Remove a member; its waiters get UNKNOWN_MEMBER_ID."""
    outcome = Outcome()
    member = group.members[member_id]
    if member.awaiting_join is not None:
        response = {"member_id": "", "error_code": ErrorCode.UNKNOWN_MEMBER_ID}
        outcome.answer(member.awaiting_join, response)
    if member.awaiting_sync is not None:
        outcome.answer(member.awaiting_sync, {"error_code": ErrorCode.UNKNOWN_MEMBER_ID})
    shard.timers.cancel(SessionExpiry(group.group_id, member_id))
    group.roster.remove(member_id)
    return outcome


def on_session_expiry(shard: ClassicShard, event: SessionExpiry, now: Moment) -> Outcome:
    """Remove a silent member, or a pending one."""
    group = shard.classic(event.group_id)
    if group is None:
        return Outcome()
    outcome = Outcome()
    member = group.members.get(event.member_id)
    if member is None:
        if event.member_id not in group.roster.pending_joins:
            return outcome
        group.roster.remove(event.member_id)
    elif member.is_excused:
        return outcome
    else:
        logger.info(
            "group %s removes member %s: silent for %d ms",
            group.group_id,
            member.member_id,
            member.session_timeout_ms,
            extra=about_group(group.group_id),
        )
        outcome = free_gradually(shard, group, member.member_id)
    return outcome.then(_continue_rebalance(shard, group, now, was_member=member is not None))


def _continue_rebalance(
    shard: ClassicShard, group: ClassicGroup, now: Moment, *, was_member: bool
) -> Outcome:
    if was_member and group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        return prepare(shard, group, now)
    if group.is_in(GroupState.PREPARING_REBALANCE) and group.roster.have_all_joined:
        return complete_join(shard, group, now)
    return Outcome()


# -- timers ----------------------------------------------------------------------------------


def on_join_timeout(shard: ClassicShard, event: JoinTimeout, now: Moment) -> Outcome:
    """End the join phase with the present members."""
    group = shard.classic(event.group_id)
    if group is None or not group.is_in(GroupState.PREPARING_REBALANCE):
        return Outcome()
    return complete_join(shard, group, now)


def on_initial_delay(shard: ClassicShard, event: InitialDelay, now: Moment) -> Outcome:
    """End a new group's join phase, or extend the delay after new members."""
    group = shard.classic(event.group_id)
    if group is None or not group.is_in(GroupState.PREPARING_REBALANCE):
        return Outcome()
    if not group.has_new_member or event.remaining_ms == 0:
        return complete_join(shard, group, now)
    group.has_new_member = False
    delay_ms = min(shard.settings.initial_rebalance_delay_ms, event.remaining_ms)
    remaining_ms = max(event.remaining_ms - event.delay_ms, 0)
    extended = InitialDelay(group.group_id, delay_ms, remaining_ms)
    shard.timers.set(join_key(group.group_id), now.monotonic_ms + delay_ms, extended)
    return Outcome()


def on_sync_timeout(shard: ClassicShard, event: SyncTimeout, now: Moment) -> Outcome:
    """Remove the members that sent no SyncGroup."""
    group = shard.classic(event.group_id)
    if group is None or group.generation != event.generation or not group.roster.pending_syncs:
        return Outcome()
    if not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return Outcome()
    outcome = Outcome()
    for member_id in sorted(group.roster.pending_syncs):
        outcome = outcome.then(free_gradually(shard, group, member_id))
    return outcome.then(prepare(shard, group, now))


def start_timers(shard: ClassicShard, now: Moment) -> Steps[None]:
    """Start new sessions of loaded members."""
    for group in tuple(shard.groups.values()):
        if isinstance(group, ClassicGroup):
            for member in group.members.values():
                expect_heartbeat(shard.timers, group.group_id, member, now)
                yield


def on_loaded(shard: ClassicShard, now: Moment) -> Outcome:
    """Let the members of groups that are too large rejoin."""
    outcome = Outcome()
    for group in tuple(shard.groups.values()):
        if isinstance(group, ClassicGroup) and len(group.members) > shard.settings.max_size:
            # The limit was lowered; members may commit before they must rejoin.
            outcome = outcome.then(prepare(shard, group, now))
    return outcome


def _await_joins(shard: ClassicShard, group: ClassicGroup, now: Moment) -> None:
    at_ms = now.monotonic_ms + group.roster.rebalance_timeout_ms
    shard.timers.set(join_key(group.group_id), at_ms, JoinTimeout(group.group_id))
