"""LeaveGroup: one member, several, the last one."""

from tests.support.coordinators.group_kit import Groups
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic.classic_group import GroupState


def test_the_last_member_leaves_an_empty_group_of_the_next_generation():
    groups = Groups()
    [member] = groups.stable()
    assert groups.leave(member) == [ErrorCode.NONE]
    group = groups.group()
    assert (group.state, group.generation, group.protocol) == (GroupState.EMPTY, 2, None)
    assert group.protocol_type == "consumer"
    loaded = groups.reloaded().group()
    assert (loaded.state, loaded.generation) == (GroupState.EMPTY, 2)


def test_several_leave_at_once_and_one_rebalance_follows():
    groups = Groups()
    first, second, third = groups.stable(3)
    assert groups.leave(first, "somebody", third) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert list(groups.group().members) == [second]
    assert groups.group().leader == second
    assert groups.group().state is GroupState.PREPARING_REBALANCE


def test_leaving_member_completes_the_join_phase():
    groups = Groups()
    leader, follower = groups.stable(2)
    waiting = groups.join(leader)
    groups.leave(follower)
    assert groups.answers[waiting]["generation_id"] == 2


def test_waiting_request_of_leaving_member_is_answered():
    groups = Groups()
    leader, follower = groups.stable(2)
    joining = groups.join(leader)
    groups.leave(leader)
    assert groups.error(joining) is ErrorCode.UNKNOWN_MEMBER_ID
    groups.join(follower)
    syncing = groups.sync(follower, {})
    assert groups.error(syncing) is ErrorCode.NONE


def test_a_pending_member_leaves():
    groups = Groups()
    member = groups.new_id()
    assert groups.leave(member) == [ErrorCode.NONE]
    assert groups.group().roster.pending_joins == set()


def test_a_pending_member_that_leaves_is_not_waited_for():
    groups = Groups()
    [leader] = groups.stable()
    pending = groups.new_id()
    waiting = groups.join(leader)
    groups.leave(pending)
    assert groups.answers[waiting]["generation_id"] == 2


def test_leaving_an_unknown_group_is_refused():
    assert Groups().leave("somebody") == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_an_unknown_member_changes_nothing():
    groups = Groups()
    groups.stable()
    assert groups.leave("somebody") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert groups.group().state is GroupState.STABLE


def test_group_is_empty_even_if_its_record_fails():
    groups = Groups()
    [member] = groups.stable()
    recorded = groups.group().recorded
    groups.fails_with = ErrorCode.NOT_COORDINATOR
    groups.leave(member)
    assert groups.group().state is GroupState.EMPTY
    assert groups.group().recorded == recorded, "nothing is replayed that is not in the log"
    assert groups.durable() == groups.reloaded().durable()
