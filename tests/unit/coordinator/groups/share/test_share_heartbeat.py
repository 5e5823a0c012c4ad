"""ShareGroupHeartbeat: responses, records, errors, and requests whose records fail."""

from unittest import mock

import pytest

from tests.support.coordinators.consumer_kit import HEARTBEAT_MS
from tests.support.coordinators.share_group_kit import ShareGroups, T, U, error_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.share import share_update

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def topics(answer):
    return {
        topic["topic_id"]: topic["partitions"] for topic in answer["assignment"]["topic_partitions"]
    }


def test_records_and_response_of_the_first_member():
    groups = ShareGroups()
    answer = groups.share_join("a", "t", rack="r")
    assert answer == {
        "member_id": "a",
        "member_epoch": 2,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "assignment": {"topic_partitions": []},
    }
    kinds = [(record[0], record[1]) for record in groups.since(0)]
    assert [kind for kind, _ in kinds] == [
        "SHARE_GROUP_MEMBER_METADATA",
        "SHARE_GROUP_METADATA",
        "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER",
        "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA",
        "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT",
        "SHARE_GROUP_STATE_PARTITION_METADATA",
    ]
    metadata = groups.since(0)[0][2]
    assert metadata == {
        "rack_id": "r",
        "client_id": "client",
        "client_host": "/1.2.3.4",
        "subscribed_topic_names": ["t"],
    }
    state = groups.since(0)[-1][1]
    partitions = [{"topic_id": T, "topic_name": "t", "partitions": [0, 1, 2]}]
    assert state == {
        "initializing_topics": partitions,
        "initialized_topics": [],
        "deleting_topics": [],
    }


def test_initialized_partitions_are_assigned_with_the_next_heartbeat():
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.work()
    groups.advance(1_000)
    answer = groups.share_stay("a")
    assert answer["member_epoch"] == 3
    assert topics(answer) == {T: [0, 1, 2]}
    assert "assignment" not in groups.share_stay("a")
    assert topics(groups.share_beat("a", 3, ["t"])) == {T: [0, 1, 2]}


def test_an_unchanged_heartbeat_writes_no_records():
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_settle()
    mark = len(groups.log)
    groups.share_stay("a")
    groups.share_beat("a", 3, ["t"])
    groups.share_beat("a", 2)
    assert groups.since(mark) == []


def test_members_share_partitions_and_get_them_immediately():
    groups = ShareGroups()
    for member_id in ("a", "b", "c", "d"):
        groups.share_join(member_id, "t")
    groups.share_settle()
    owned = [groups.assigned(member_id)[T] for member_id in ("a", "b", "c", "d")]
    # Four members and three partitions: each partition has two members.
    assert sorted(index for indexes in owned for index in indexes) == [0, 0, 1, 1, 2, 2]


def test_the_assignment_waits_for_the_interval():
    groups = ShareGroups(share_assignment_interval_ms=5_000)
    groups.share_join("a", "t")
    groups.work()
    groups.advance(4_999)
    assert groups.share_stay("a")["member_epoch"] == 2
    assert groups.share().epoch == 3
    groups.advance(1)
    assert groups.share_stay("a")["member_epoch"] == 3


def test_a_changed_subscription_removes_partitions_within_the_epoch():
    groups = ShareGroups(share_assignment_interval_ms=10_000)
    groups.share_join("a", "t")
    groups.work()
    groups.advance(10_000 - 1)
    groups.share_stay("a")
    groups.advance(1)
    groups.share_stay("a")
    assert groups.assigned("a") == {T: {0, 1, 2}}
    answer = groups.share_beat("a", 3, ["u"])
    assert answer["member_epoch"] == 3
    assert topics(answer) == {}


@pytest.mark.parametrize(
    ("epoch", "message"),
    [
        (
            4,
            "The share group member has a greater member epoch (4) than the one known by the "
            "group coordinator (3). The member must abandon all its partitions and rejoin.",
        ),
        (
            1,
            "The share group member has a smaller member epoch (1) than the one known by the "
            "group coordinator (3), and it does not match the previous member epoch (2). The "
            "member must abandon all its partitions and rejoin.",
        ),
    ],
)
def test_wrong_epochs_are_fenced(epoch, message):
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_settle()
    answer = groups.share_beat("a", epoch)
    assert error_of(answer) is ErrorCode.FENCED_MEMBER_EPOCH
    assert answer["error_message"] == message


def test_the_previous_epoch_is_a_retry():
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_settle()
    assert groups.share_beat("a", 2)["member_epoch"] == 3


def test_only_the_first_request_creates_a_group():
    groups = ShareGroups()
    answer = groups.share_beat("a", 1, group_id="none")
    assert error_of(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Share group none not found."
    assert "none" not in groups.shard.groups


def test_groups_of_other_kinds_are_refused():
    groups = ShareGroups()
    groups.commit()
    answer = groups.share_join("a", "t")
    assert error_of(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Group g is not a share group."


def test_unknown_members_are_refused():
    groups = ShareGroups()
    groups.share_join("a", "t")
    answer = groups.share_beat("b", 2)
    assert error_of(answer) is ErrorCode.UNKNOWN_MEMBER_ID
    assert answer["error_message"] == "Member b is not a member of group g."


def test_a_full_group_refuses_new_members_only():
    groups = ShareGroups(share_max_size=1)
    groups.share_join("a", "t")
    for epoch in (0, 1):
        answer = groups.share_beat("b", epoch, ["t"])
        assert error_of(answer) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert error_of(groups.share_join("a", "t")) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack": ""}, "RackId can't be empty."),
        ({"names": []}, "SubscribedTopicNames must be set in first request."),
        ({"names": None}, "SubscribedTopicNames must be set in first request."),
        ({"epoch": -2}, "MemberEpoch is invalid."),
        ({"names": ["t"] * 2_501}, "A member can subscribe to at most 2500 topics by name."),
    ],
)
def test_invalid_requests(fields, message):
    request = {"member_id": "a", "epoch": 0, "names": ["t"], **fields}
    answer = ShareGroups().share_beat(**request)
    assert answer == {"error_code": ErrorCode.INVALID_REQUEST, "error_message": message}


def test_a_failed_first_request_leaves_nothing():
    groups = ShareGroups()
    groups.fails_with = NOT_AVAILABLE
    assert error_of(groups.share_join("a", "t")) is NOT_AVAILABLE
    assert groups.shard.groups == {}
    assert len(groups.shard.timers) == 0
    assert groups.effects == []


def test_a_failed_request_is_repeated_by_the_next():
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_settle()
    groups.create_topic("v", 7)
    groups.fails_with = NOT_AVAILABLE
    groups.share_beat("a", 3, ["t", "v"])
    groups.fails_with = None
    assert groups.share_member("a").topic_names == {"t"}
    assert ("g", "a", "session") in groups.shard.timers
    groups.share_beat("a", 3, ["t", "v"])
    groups.share_settle()
    assert groups.assigned("a").keys() == {T, bytes(15) + b"\x07"}


def test_new_topics_and_partitions_raise_the_epoch():
    groups = ShareGroups()
    groups.share_join("a", "u", "later")
    groups.share_settle()
    epoch = groups.share().epoch
    groups.create_topic("later", 9, partitions=2)
    groups.share_settle()
    assert groups.share().epoch > epoch
    groups.grow_topic("later", 3)
    groups.share_settle()
    assert groups.assigned("a") == {U: {0, 1}, bytes(15) + b"\x09": {0, 1, 2}}


def test_a_recreated_topic_is_another_topic():
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_settle()
    groups.forget_topic("t")
    groups.create_topic("t", 8, partitions=1)
    groups.share_settle()
    assert groups.assigned("a") == {bytes(15) + b"\x08": {0}}
    assert groups.share_topics().all_ids == {bytes(15) + b"\x08"}


def test_the_topics_of_a_group_are_limited():
    groups = ShareGroups()
    groups.share_join("a", "t")
    with mock.patch.object(share_update, "MOST_GROUP_TOPICS", 2):
        answer = groups.share_join("b", "u", "v")
        assert answer == {
            "error_code": ErrorCode.INVALID_REQUEST,
            "error_message": "The members of a group can subscribe to at most 2 topics.",
        }
        assert error_of(groups.share_join("b", "u")) is ErrorCode.NONE
    assert groups.share().members.keys() == {"a", "b"}
