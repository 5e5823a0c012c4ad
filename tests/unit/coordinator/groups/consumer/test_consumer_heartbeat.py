"""ConsumerGroupHeartbeat: responses, errors, and what a request leaves if its records fail."""

from typing import Any

import pytest

from tests.support.coordinators.consumer_kit import (
    HEARTBEAT_MS,
    ConsumerGroups,
    T,
    U,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.group_records import GroupMemberKey, GroupRecordKind, group_record

CURRENT = GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def of_unknown_state(member_id, epoch):
    """Return the record of a member whose state a later version wrote."""
    key = GroupMemberKey(CURRENT, "g", member_id)
    partitions = [{"topic_id": T, "partitions": [0, 1, 2], "assignment_epochs": [2, 2, 2]}]
    return group_record(key, member_epoch=epoch, state=9, assigned_partitions=partitions)


def test_the_records_and_the_response_of_the_first_member():
    groups = ConsumerGroups()
    answer = groups.enter("a", "t", rack="r", assignor="range")
    assert answer == {
        "member_id": "a",
        "member_epoch": 2,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "assignment": {"topic_partitions": [{"topic_id": T, "partitions": [0, 1, 2]}]},
    }
    metadata_hash = groups.consumer().metadata_hash
    assert groups.since(0) == [
        (
            "MEMBER_METADATA",
            "a",
            {
                "instance_id": None,
                "rack_id": "r",
                "client_id": "client",
                "client_host": "/1.2.3.4",
                "subscribed_topic_names": ["t"],
                "subscribed_topic_regex": "",
                "rebalance_timeout_ms": 60_000,
                "server_assignor": "range",
                "classic_member_metadata": None,
            },
        ),
        ("METADATA", {"epoch": 2, "metadata_hash": metadata_hash}),
        (
            "TARGET_ASSIGNMENT_MEMBER",
            "a",
            {"topic_partitions": [{"topic_id": T, "partitions": [0, 1, 2]}]},
        ),
        (
            "TARGET_ASSIGNMENT_METADATA",
            {"assignment_epoch": 2, "assignment_timestamp": groups.moment.wall_ms},
        ),
        (
            "CURRENT_MEMBER_ASSIGNMENT",
            "a",
            {
                "member_epoch": 2,
                "previous_member_epoch": 0,
                "state": 0,
                "assigned_partitions": [
                    {"topic_id": T, "partitions": [0, 1, 2], "assignment_epochs": [2, 2, 2]}
                ],
                "partitions_pending_revocation": [],
            },
        ),
    ]
    assert metadata_hash
    assert groups.consumer().state == "Stable"


def test_a_member_of_no_topic_makes_a_group_in_its_first_epoch():
    groups = ConsumerGroups()
    assert groups.enter("a")["member_epoch"] == 1
    assert [record[0] for record in groups.since(0)] == [
        "MEMBER_METADATA",
        "CURRENT_MEMBER_ASSIGNMENT",
    ]
    assert groups.consumer().state == "Stable"
    assert groups.reloaded().durable() == groups.durable()


def test_a_heartbeat_that_changes_nothing_has_no_records_and_no_assignment():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    mark = len(groups.log)
    assert groups.beat("a", 2) == {
        "member_id": "a",
        "member_epoch": 2,
        "heartbeat_interval_ms": HEARTBEAT_MS,
    }
    assert len(groups.log) == mark


def test_assignment_is_repeated_to_a_member_that_has_missed_it():
    """A delayed request advances the epoch, and the response goes to a closed connection."""
    groups = ConsumerGroups(consumer_assignment_interval_ms=0)
    groups.enter("a", "t")
    groups.grow_topic("t", 4)
    missed = groups.beat("a", 2)
    assert missed["member_epoch"] == 3
    answer = groups.beat("a", 2, owned={T: [0, 1, 2]})
    assert answer["member_epoch"] == 3
    partitions = [{"topic_id": T, "partitions": [0, 1, 2, 3]}]
    assert answer["assignment"] == missed["assignment"] == {"topic_partitions": partitions}
    assert "assignment" not in groups.beat("a", 2, owned={T: [0, 1, 2, 3]})


def test_a_full_request_is_answered_with_the_assignment():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    full: dict[str, Any] = {"names": ["t"], "rebalance_ms": 60_000, "owned": {T: [0, 1, 2]}}
    mark = len(groups.log)
    answer = groups.beat("a", 2, **full)
    assert answer["assignment"]["topic_partitions"] == [{"topic_id": T, "partitions": [0, 1, 2]}]
    assert len(groups.log) == mark
    for name in full:
        fields = {**full, name: -1 if name == "rebalance_ms" else None}
        assert "assignment" not in groups.beat("a", 2, **fields)


def test_a_change_of_the_client_alone_is_recorded_without_a_new_epoch():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    mark = len(groups.log)
    groups.beat("a", 2, client_id="other")
    (record,) = groups.since(mark)
    assert record[:2] == ("MEMBER_METADATA", "a")
    assert record[2]["client_id"] == "other"
    assert groups.consumer().state == "Stable"


def test_a_change_of_the_assignor_raises_the_epoch():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    assert groups.beat("a", 2, assignor="uniform")["member_epoch"] == 2
    assert groups.beat("a", 2, assignor="range")["member_epoch"] == 3


def test_a_coordinator_chooses_the_id_of_an_old_client():
    groups = ConsumerGroups()
    answer = groups.enter("", "t", version=0)
    assert groups.code(answer) is ErrorCode.NONE
    assert answer["member_id"] in groups.consumer().members


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"member_id": "", "epoch": 1, "version": 0}, "MemberId can't be empty."),
        ({"member_id": "", "epoch": -1, "version": 0}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance": ""}, "InstanceId can't be empty."),
        ({"rack": ""}, "RackId can't be empty."),
        ({"rebalance_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": {T: [0]}}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_requests(fields, message):
    groups = ConsumerGroups()
    valid = {"member_id": "a", "epoch": 0, "names": ["t"], "rebalance_ms": 1, "owned": {}}
    answer = groups.beat(**{**valid, **fields})
    assert groups.code(answer) is ErrorCode.INVALID_REQUEST
    assert answer["error_message"] == message
    assert groups.log == []
    assert groups.shard.groups == {}


def test_an_unknown_assignor_is_refused():
    groups = ConsumerGroups()
    answer = groups.enter("a", "t", assignor="sticky")
    assert groups.code(answer) is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert answer["error_message"] == (
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


def test_records_that_fail_are_made_again():
    groups = ConsumerGroups()
    groups.fails_with = NOT_AVAILABLE
    assert groups.code(groups.enter("a", "t")) is NOT_AVAILABLE
    assert groups.shard.groups == {}
    groups.fails_with = None
    assert groups.enter("a", "t")["member_epoch"] == 2


def test_changed_topics_are_noticed_although_their_record_has_failed():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.grow_topic("t", 4)
    groups.advance(1_000)
    groups.fails_with = NOT_AVAILABLE
    assert groups.code(groups.beat("a", 2)) is NOT_AVAILABLE
    groups.fails_with = None
    answer = groups.beat("a", 2)
    assert answer["assignment"]["topic_partitions"] == [{"topic_id": T, "partitions": [0, 1, 2, 3]}]


def test_changed_topics_are_noticed_although_the_first_member_is_fenced():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    groups.enter("b", "u")
    groups.settle()
    groups.shard.replay(*of_unknown_state("a", 3))
    groups.advance(1_000)
    groups.grow_topic("u", 3)
    answer = groups.beat("a", 3, owned={T: [0, 1, 2]})
    assert groups.code(answer) is ErrorCode.FENCED_MEMBER_EPOCH
    answer = groups.stay("b")
    assert answer["assignment"]["topic_partitions"] == [{"topic_id": U, "partitions": [0, 1, 2]}]


def test_expressions_are_resolved_although_the_first_member_is_fenced():
    groups = ConsumerGroups()
    groups.enter("a", regex="t.*", names=None)
    groups.work()
    groups.shard.replay(*of_unknown_state("a", groups.consumer_member("a").epoch))
    groups.advance(20_000)
    groups.create_topic("two", 3)
    epoch = groups.consumer_member("a").epoch
    answer = groups.beat("a", epoch, owned={T: [0, 1, 2]})
    assert groups.code(answer) is ErrorCode.FENCED_MEMBER_EPOCH
    assert groups.effects == []
    groups.enter("a", regex="t.*", names=None)
    groups.work()
    assert groups.consumer().subscriptions.resolved["t.*"].topics == {"t", "two"}


def test_a_subscription_names_a_bounded_number_of_topics():
    groups = ConsumerGroups()
    names = [f"topic-{number}" for number in range(20_001)]
    answer = groups.enter("a", *names)
    assert groups.code(answer) is ErrorCode.INVALID_REQUEST
    assert "at most 20000 topics" in answer["error_message"]
