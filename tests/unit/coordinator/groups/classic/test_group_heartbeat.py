"""Heartbeats and sessions."""

from tests.support.coordinators.group_kit import SESSION_MS, Groups
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic.classic_group import GroupState


def test_a_member_stays_while_it_sends_heartbeats():
    groups = Groups()
    [member] = groups.stable()
    for _ in range(5):
        groups.advance(SESSION_MS - 1)
        assert groups.heartbeat(member) is ErrorCode.NONE
    groups.advance(SESSION_MS)
    assert groups.heartbeat(member) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.group().state is GroupState.EMPTY


def test_a_commit_counts_as_a_heartbeat():
    groups = Groups()
    [member] = groups.stable()
    groups.advance(SESSION_MS - 1)
    assert groups.commit(member, generation=1) is ErrorCode.NONE
    groups.advance(SESSION_MS - 1)
    assert member in groups.group().members


def test_heartbeat_in_rebalance_asks_to_rejoin_and_keeps_the_session():
    groups = Groups()
    leader, follower = groups.stable(2)
    groups.join(leader)
    groups.advance(SESSION_MS - 1)
    assert groups.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.advance(SESSION_MS - 1)
    assert follower in groups.group().members
    groups.advance(1)
    assert groups.group().generation == 2, "the one that waited for it goes on without it"


def test_an_expired_member_makes_the_others_rejoin():
    groups = Groups()
    leader, follower = groups.stable(2)
    groups.advance(SESSION_MS - 1)
    groups.heartbeat(leader)
    groups.advance(1)
    assert follower not in groups.group().members
    assert groups.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_invalid_heartbeats_are_refused():
    groups = Groups()
    [member] = groups.stable()
    assert groups.heartbeat(member, group_id="other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat("somebody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(member, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat(groups.new_id()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_after_a_load_every_member_has_a_full_session():
    groups = Groups()
    [member] = groups.stable()
    loaded = groups.reloaded()
    loaded.advance(SESSION_MS - 1)
    assert loaded.heartbeat(member) is ErrorCode.NONE
    loaded.advance(SESSION_MS)
    assert loaded.group().state is GroupState.EMPTY
    assert loaded.recorded().generation == 2
