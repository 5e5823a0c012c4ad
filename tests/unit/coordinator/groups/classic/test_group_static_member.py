"""Static members: a new incarnation takes its former self's place (KIP-345)."""

from tests.support.coordinators.group_kit import REBALANCE_MS, SESSION_MS, Groups
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic.classic_group import GroupState


def stable_static(groups, **fields):
    """Create a stable group of the static member `i`; return its member id."""
    token = groups.join(instance="i", **fields)
    groups.advance(0)
    member = groups.answers[token]["member_id"]
    groups.sync(member, {member: b"mine"}, instance="i")
    return member


def test_a_static_member_needs_no_id_first_and_is_called_after_its_instance():
    groups = Groups()
    assert stable_static(groups) == "i-uuid1"
    assert groups.group().roster.static_members == {"i": "i-uuid1"}


def test_a_restarted_member_keeps_generation_and_assignment():
    groups = Groups()
    former = stable_static(groups)
    token = groups.join(instance="i")
    answer = groups.answers[token]
    assert groups.group().state is GroupState.STABLE
    assert answer["generation_id"] == 1
    assert answer["member_id"] != former
    assert groups.member(answer["member_id"]).assignment == b"mine"
    synced = groups.sync(answer["member_id"], instance="i")
    assert groups.answers[synced]["assignment"] == b"mine"


def test_a_restarted_leader_is_told_to_skip_the_assignment_from_v9_on():
    groups = Groups()
    former = stable_static(groups)
    answer = groups.answers[groups.join(instance="i", version=9)]
    assert answer["skip_assignment"]
    assert answer["leader"] == answer["member_id"]
    assert len(answer["members"]) == 1
    former = answer["member_id"]
    answer = groups.answers[groups.join(instance="i", version=8)]
    assert "skip_assignment" not in answer
    assert answer["leader"] == former, "so that it does not take itself for the leader"
    assert answer["members"] == []


def test_the_former_incarnation_is_fenced():
    groups = Groups()
    former = stable_static(groups)
    groups.join(instance="i")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(former, instance="i") is fenced
    assert groups.error(groups.sync(former, instance="i")) is fenced
    assert groups.error(groups.join(former, instance="i")) is fenced
    assert groups.commit(former, generation=1, instance="i") is fenced
    assert groups.leave((former, "i")) == [fenced]
    assert groups.heartbeat(former) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_new_member_id_survives_a_load():
    groups = Groups()
    stable_static(groups)
    new = groups.answers[groups.join(instance="i")]["member_id"]
    loaded = groups.reloaded()
    assert list(loaded.group().members) == [new]
    assert loaded.group().state is GroupState.STABLE
    assert loaded.group().leader == new


def test_another_chosen_protocol_makes_a_rebalance():
    groups = Groups()
    both = (("range", b""), ("sticky", b""))
    stable_static(groups, known=both)
    token = groups.join(instance="i", known=both[::-1])
    assert groups.answers[token]["generation_id"] == 2
    assert groups.answers[token]["protocol_name"] == "sticky"


def test_a_static_member_that_comes_back_before_the_assignment_makes_a_rebalance():
    groups = Groups()
    groups.join(instance="i")
    second = groups.join(instance="j")
    groups.advance(0)
    waiting = groups.sync(groups.answers[second]["member_id"], instance="j")
    groups.join(instance="i")
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    assert groups.error(waiting) is ErrorCode.REBALANCE_IN_PROGRESS


def test_waiting_join_of_replaced_static_member_is_fenced():
    groups = Groups(initial_rebalance_delay_ms=3_000)
    first = groups.join(instance="i")
    second = groups.join(instance="i")
    assert groups.error(first) is ErrorCode.FENCED_INSTANCE_ID
    assert groups.answers[first]["member_id"] == "i-uuid1"
    groups.advance(3_000)
    assert groups.answers[second]["generation_id"] == 1


def test_a_static_member_is_not_removed_for_missing_a_rebalance_but_for_its_session():
    groups = Groups()
    stable_static(groups, session_ms=REBALANCE_MS * 2)
    token = groups.join(groups.new_id(session_ms=REBALANCE_MS * 2), session_ms=REBALANCE_MS * 2)
    groups.advance(REBALANCE_MS)
    assert groups.answers[token]["generation_id"] == 2
    assert "i" in groups.group().roster.static_members
    assert len(groups.answers[token]["members"]) == 2, "the dynamic member leads now"
    groups.advance(REBALANCE_MS)
    assert "i" not in groups.group().roster.static_members


def test_an_administrator_removes_a_member_by_its_instance():
    groups = Groups()
    stable_static(groups)
    assert groups.leave(("", "i"), ("", "other")) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.group().state is GroupState.EMPTY


def test_unrecordable_static_replacement_is_undone():
    groups = Groups()
    former = stable_static(groups)
    groups.fails_with = ErrorCode.NOT_COORDINATOR
    token = groups.join(instance="i", known=(("range", b"new"),))
    assert groups.error(token) is ErrorCode.NOT_COORDINATOR
    assert groups.group().roster.static_members == {"i": former}
    assert groups.member(former).protocols == (("range", b"subscription"),)
    assert groups.heartbeat(former, instance="i") is ErrorCode.NONE


def test_an_unknown_instance_is_an_unknown_member():
    groups = Groups()
    former = stable_static(groups)
    assert groups.heartbeat(former, instance="j") is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_of_a_static_member_ends_as_any_other():
    groups = Groups()
    stable_static(groups)
    groups.advance(SESSION_MS)
    assert groups.group().state is GroupState.EMPTY
