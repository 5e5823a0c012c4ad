"""Members of share groups that leave or are silent."""

import pytest

from tests.support.coordinators.share_group_kit import SHARE_SESSION_MS, ShareGroups, T, error_of
from wirebroker.codecs.errors import ErrorCode

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def with_members(*member_ids, **settings):
    groups = ShareGroups(**settings)
    for member_id in member_ids:
        groups.share_join(member_id, "t")
    groups.share_settle()
    return groups


@pytest.mark.parametrize("epoch", [-1])
def test_records_of_the_last_member_that_leaves(epoch):
    groups = with_members("a")
    mark, group_epoch = len(groups.log), groups.share().epoch
    assert groups.share_beat("a", epoch) == {"member_id": "a", "member_epoch": -1}
    records = groups.since(mark)
    assert [(record[0], record[-1] is None) for record in records] == [
        ("SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT", True),
        ("SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER", True),
        ("SHARE_GROUP_MEMBER_METADATA", True),
        ("SHARE_GROUP_METADATA", False),
        ("SHARE_GROUP_TARGET_ASSIGNMENT_METADATA", False),
    ]
    assert records[-1][1] == {
        "assignment_epoch": group_epoch + 1,
        "assignment_timestamp": 0,
    }
    assert groups.share().state == "Empty"
    assert len(groups.shard.timers) == 0


def test_the_others_get_the_partitions_of_a_member_that_leaves():
    groups = with_members("a", "b")
    groups.share_beat("a", -1)
    assert len(groups.assigned("b")[T]) < 3
    groups.share_settle()
    assert groups.assigned("b") == {T: {0, 1, 2}}


@pytest.mark.parametrize(
    ("group_id", "member_id", "code", "message"),
    [
        ("none", "a", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        ("g", "b", ErrorCode.UNKNOWN_MEMBER_ID, "Member b is not a member of group g."),
    ],
)
def test_strangers_cannot_leave(group_id, member_id, code, message):
    answer = with_members("a").share_beat(member_id, -1, group_id=group_id)
    assert answer == {"error_code": code, "error_message": message}


def test_a_silent_member_is_removed():
    groups = with_members("a", "b")
    groups.advance(SHARE_SESSION_MS - 2_000)
    groups.share_stay("b")
    groups.advance(2_000)
    assert groups.share().members.keys() == {"b"}
    assert error_of(groups.share_beat("a", 3)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_whose_removal_fails_gets_another_session():
    groups = with_members("a")
    groups.fails_with = NOT_AVAILABLE
    groups.advance(SHARE_SESSION_MS)
    assert groups.share().members.keys() == {"a"}
    groups.fails_with = None
    groups.advance(SHARE_SESSION_MS)
    assert groups.share().members == {}


def test_members_have_whole_sessions_after_a_restart():
    groups = with_members("a")
    groups.advance(SHARE_SESSION_MS - 1_001)
    groups = groups.reloaded()
    groups.advance(SHARE_SESSION_MS - 1)
    assert groups.share().members.keys() == {"a"}
    groups.advance(1)
    assert groups.share().members == {}


def test_a_deleted_group_has_no_timers():
    groups = with_members("a")
    groups.share_beat("a", -1)
    groups.begin_group_deletion()
    groups.carry_out_deletion()
    assert groups.shard.groups == {}
    assert len(groups.shard.timers) == 0
