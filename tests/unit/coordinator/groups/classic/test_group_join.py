"""JoinGroup: new members, the end of the join phase, and the responses."""

import pytest

from tests.support.coordinators.group_kit import RANGE, REBALANCE_MS, SESSION_MS, Groups
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic.classic_group import GroupState

BOTH = (("range", b"r"), ("roundrobin", b"rr"))


def test_new_member_gets_an_id_and_must_rejoin_with_it():
    groups = Groups()
    token = groups.join()
    assert groups.error(token) is ErrorCode.MEMBER_ID_REQUIRED
    assert groups.answers[token]["member_id"] == "client-uuid1"
    assert groups.group().roster.pending_joins == {"client-uuid1"}
    assert groups.group().state is GroupState.EMPTY


def test_group_is_recorded_when_its_first_member_joins():
    groups = Groups()
    groups.join()
    assert groups.recorded().generation == 0
    assert groups.recorded().protocol_type == ""
    assert groups.reloaded().group().state is GroupState.EMPTY


def test_a_pending_member_cannot_become_static_and_stays_pending():
    groups = Groups()
    member = groups.new_id()
    token = groups.join(member, instance="i")
    assert groups.error(token) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.answers[token]["member_id"] == ""
    assert groups.group().roster.pending_joins == {member}


def test_pending_member_that_does_not_rejoin_is_removed():
    groups = Groups()
    member = groups.new_id()
    groups.advance(SESSION_MS)
    assert groups.group().roster.pending_joins == set()
    assert groups.error(groups.join(member)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_before_v4_a_member_joins_without_an_id():
    groups = Groups()
    token = groups.join(version=3)
    groups.advance(0)
    assert groups.answers[token]["member_id"] == "client-uuid1"
    assert groups.answers[token]["generation_id"] == 1


def test_a_member_of_an_unknown_group_is_unknown():
    groups = Groups()
    token = groups.join("somebody")
    assert groups.error(token) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.answers[token]["member_id"] == "somebody"
    assert "g" not in groups.shard.groups


@pytest.mark.parametrize("fields", [{"known": ()}, {"protocol_type": ""}])
def test_a_join_without_protocols_is_refused_but_creates_the_group(fields):
    groups = Groups()
    assert groups.error(groups.join(**fields)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.group().state is GroupState.EMPTY


def test_a_protocol_that_not_all_members_know_is_refused():
    groups = Groups()
    groups.stable()
    token = groups.join(known=(("sticky", b""),))
    assert groups.error(token) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    token = groups.join(protocol_type="connect")
    assert groups.error(token) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_leader_learns_all_members_and_the_others_none():
    groups = Groups()
    first, second = groups.new_id(), groups.new_id()
    leader, follower = groups.join(first), groups.join(second)
    groups.advance(0)
    assert [m["member_id"] for m in groups.answers[leader]["members"]] == [first, second]
    assert groups.answers[leader]["members"][0]["metadata"] == b"subscription"
    assert groups.answers[follower]["members"] == []
    assert groups.answers[follower]["leader"] == first
    assert groups.answers[follower]["protocol_name"] == "range"
    assert groups.answers[follower]["protocol_type"] == "consumer"


def test_protocol_preferred_by_most_members_is_chosen():
    groups = Groups()
    ids = [groups.new_id() for _ in range(3)]
    groups.join(ids[0], known=BOTH)
    groups.join(ids[1], known=BOTH[::-1])
    last = groups.join(ids[2], known=BOTH[::-1])
    groups.advance(0)
    assert groups.answers[last]["protocol_name"] == "roundrobin"


def test_a_new_group_waits_for_more_members_and_longer_if_they_come():
    groups = Groups(initial_rebalance_delay_ms=3_000)
    first = groups.join(version=3)
    groups.advance(2_000)
    second = groups.join(version=3)
    groups.advance(1_000)
    assert first not in groups.answers
    groups.advance(3_000)
    assert groups.answers[first]["generation_id"] == groups.answers[second]["generation_id"] == 1


def test_the_initial_delay_is_no_longer_than_the_rebalance_timeout():
    groups = Groups(initial_rebalance_delay_ms=3_000)
    first = groups.join(version=3, rebalance_ms=5_000)
    for _ in range(2):
        groups.advance(2_000)
        groups.join(version=3, rebalance_ms=5_000)
    groups.advance(2_000)
    assert groups.answers[first]["generation_id"] == 1


def test_a_pending_member_does_not_hold_up_a_new_group():
    groups = Groups()
    member = groups.new_id()
    groups.new_id()
    token = groups.join(member)
    groups.advance(0)
    assert groups.answers[token]["generation_id"] == 1


def test_a_rebalance_ends_when_all_known_members_have_rejoined():
    groups = Groups()
    leader, follower = groups.stable(2)
    waiting = groups.join(leader)
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    assert waiting not in groups.answers
    groups.join(follower)
    assert groups.answers[waiting]["generation_id"] == 2


def test_a_rebalance_waits_for_pending_members():
    groups = Groups()
    [leader] = groups.stable()
    pending = groups.new_id()
    waiting = groups.join(leader)
    assert waiting not in groups.answers
    groups.join(pending)
    assert groups.answers[waiting]["generation_id"] == 2


def test_members_that_do_not_rejoin_in_time_are_removed():
    groups = Groups()
    leader, follower = groups.stable(2, session_ms=SESSION_MS * 100)
    waiting = groups.join(follower, session_ms=SESSION_MS * 100)
    assert groups.group().state is GroupState.STABLE, "a follower with nothing new changes nothing"
    assert groups.answers[waiting]["generation_id"] == 1
    waiting = groups.join(follower, known=(("range", b"new"),), session_ms=SESSION_MS * 100)
    groups.advance(REBALANCE_MS)
    assert groups.answers[waiting]["leader"] == follower
    assert leader not in groups.group().members


def test_the_leader_rejoining_makes_a_rebalance():
    groups = Groups()
    [leader] = groups.stable()
    token = groups.join(leader)
    assert groups.answers[token]["generation_id"] == 2


def test_repeated_join_returns_the_same_generation():
    groups = Groups()
    member = groups.new_id()
    groups.join(member)
    groups.advance(0)
    token = groups.join(member)
    assert groups.answers[token]["generation_id"] == 1
    assert groups.answers[token]["members"][0]["member_id"] == member


def test_new_metadata_in_completing_rebalance_begins_another_one():
    groups = Groups()
    first, second = groups.new_id(), groups.new_id()
    groups.join(first)
    groups.join(second)
    groups.advance(0)
    waiting_sync = groups.sync(second)
    groups.join(first, known=(("range", b"new"),))
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    assert groups.error(waiting_sync) is ErrorCode.REBALANCE_IN_PROGRESS


def test_full_stable_group_refuses_new_members():
    groups = Groups(max_size=1)
    [member] = groups.stable()
    token = groups.join()
    assert groups.error(token) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.answers[token]["member_id"] == ""
    assert groups.error(groups.join(member)) is ErrorCode.NONE


def test_members_beyond_the_limit_are_refused_in_a_rebalance():
    groups = Groups(max_size=1)
    first, second = groups.new_id(), groups.new_id()
    groups.join(first)
    assert groups.error(groups.join(second)) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_loaded_group_over_a_lowered_limit_rebalances():
    groups = Groups()
    groups.stable(2)
    smaller = groups.reloaded(max_size=1)
    assert smaller.group().state is GroupState.PREPARING_REBALANCE


def test_a_group_whose_creation_cannot_be_recorded_does_not_exist():
    groups = Groups()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.error(groups.join()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.shard.groups == {}
    assert len(groups.shard.timers) == 0


def test_the_last_metadata_of_a_protocol_named_twice_counts():
    groups = Groups()
    token = groups.join(version=3, known=(*RANGE, ("range", b"last")))
    groups.advance(0)
    assert groups.answers[token]["members"][0]["metadata"] == b"last"


def test_a_new_member_that_stays_silent_while_it_waits_is_dropped_after_five_minutes():
    groups = Groups()
    [leader] = groups.stable(session_ms=1_000_000, rebalance_ms=1_000_000)
    waiting = groups.join(groups.new_id())
    for _ in range(6):
        groups.advance(60_000)
        groups.heartbeat(leader)
    assert groups.error(waiting) is ErrorCode.UNKNOWN_MEMBER_ID
