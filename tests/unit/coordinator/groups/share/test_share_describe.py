"""ShareGroupDescribe, ListGroups and what else a share group refuses or shows."""

import pytest

from tests.support.coordinators.share_group_kit import ShareGroups, T
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.shard.admin import list_groups
from wirebroker.coordinator.groups.shard.expiry import sweep_expired


def settled():
    groups = ShareGroups()
    groups.share_join("a", "t", rack="r")
    groups.share_settle()
    return groups


def test_a_described_group():
    groups = settled()
    groups.share_join("b", "t", "later")
    described = groups.described()
    members = described.pop("members")
    assert described == {
        "group_id": "g",
        "group_state": "Stable",
        "group_epoch": 4,
        "assignment_epoch": 4,
        "assignor_name": "simple",
    }
    assert [member["member_id"] for member in members] == ["b", "a"]
    assert members[1] == {
        "member_id": "a",
        "rack_id": "r",
        "member_epoch": 3,
        "client_id": "client",
        "client_host": "/1.2.3.4",
        "subscribed_topic_names": ["t"],
        "assignment": {
            "topic_partitions": [{"topic_id": T, "topic_name": "t", "partitions": [0, 1, 2]}]
        },
    }


def test_deleted_topics_are_not_described():
    groups = settled()
    groups.delete_topic("t")
    (member,) = groups.described()["members"]
    assert member["assignment"] == {"topic_partitions": []}


@pytest.mark.parametrize(
    ("group_id", "message"),
    [("none", "Group none not found."), ("c", "Group c is not a share group.")],
)
def test_other_groups_are_not_described(group_id, message):
    groups = ShareGroups()
    groups.commit(group_id="c")
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND") as refusal:
        groups.described(group_id)
    assert refusal.value.message == message


@pytest.mark.parametrize("has_members", [True, False])
def test_a_listed_group(has_members):
    groups = settled()
    if not has_members:
        groups.share_beat("a", -1)
    assert list_groups(groups.shard, frozenset(), frozenset(["share"])) == [
        {
            "group_id": "g",
            "protocol_type": "share",
            "group_state": "Stable" if has_members else "Empty",
            "group_type": "share",
        }
    ]


def test_share_groups_have_no_committed_offsets():
    groups = settled()
    assert groups.commit() is ErrorCode.GROUP_ID_NOT_FOUND
    group = groups.share()
    for check in (group.check_offset_delete, lambda: group.check_transactional_commit(None)):
        with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
            check()


def test_other_members_may_not_join():
    groups = settled()
    assert groups.error(groups.join("")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    answer = groups.enter("m", "t")
    assert answer["error_code"] is ErrorCode.GROUP_ID_NOT_FOUND


def test_share_groups_never_expire():
    groups = settled()
    groups.share_beat("a", -1)
    assert [outcome.records for outcome in sweep_expired(groups.shard, 1 << 50)] == []


def test_the_bytes_of_members_are_counted():
    groups = settled()
    group = groups.share()
    assert group.metadata_bytes == group.member_bytes("a", None) == len("a" + "r" + "t")
    assert group.member_bytes("b", None) == 0
    assert group.is_subscribed_to("t")
    groups.share_beat("a", -1)
    assert group.metadata_bytes == 0
