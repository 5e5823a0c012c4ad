"""ConsumerGroupDescribe and the other requests that read or delete consumer groups."""

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups, T, U
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer.consumer_describe import describe
from wirebroker.coordinator.groups.shard import admin
from wirebroker.coordinator.groups.shard.admin import delete_groups, filter_words, list_groups


def assignment(*topics):
    return {
        "topic_partitions": [
            {"topic_id": topic_id, "topic_name": name, "partitions": partitions}
            for topic_id, name, partitions in topics
        ]
    }


def test_a_group_is_described_with_its_members():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i", rack="r")
    groups.advance(1_000)
    groups.enter("b", "u", regex="t", assignor="range")
    groups.work()
    groups.advance(1_000)
    groups.stay("b")
    groups.stay("a", owned={T: [0, 1, 2]})
    described = in_one_go(describe(groups.shard, "g"))
    members = {member["member_id"]: member for member in described.pop("members")}
    assert described == {
        "group_id": "g",
        "group_state": "Reconciling",
        "group_epoch": 4,
        "assignment_epoch": 4,
        "assignor_name": "range",
    }
    # Partitions that it gives up are part of what it has.
    assert members["a"] == {
        "member_id": "a",
        "instance_id": "i",
        "rack_id": "r",
        "member_epoch": 2,
        "client_id": "client",
        "client_host": "/1.2.3.4",
        "subscribed_topic_names": ["t"],
        "subscribed_topic_regex": "",
        "assignment": assignment((T, "t", [0, 1, 2])),
        "target_assignment": assignment((T, "t", [0, 1])),
        "member_type": 1,
    }
    assert members["b"]["subscribed_topic_regex"] == "t"
    assert members["b"]["assignment"] == assignment((U, "u", [0, 1]))
    assert members["b"]["target_assignment"] == assignment((T, "t", [2]), (U, "u", [0, 1]))


def test_deleted_topics_are_left_out():
    groups = ConsumerGroups()
    groups.enter("a", "t", "u")
    groups.delete_topic("t")
    (member,) = in_one_go(describe(groups.shard, "g"))["members"]
    assert member["assignment"] == member["target_assignment"] == assignment((U, "u", [0, 1]))


def test_other_groups_are_not_found():
    groups = ConsumerGroups()
    groups.stable()
    for group_id, message in (
        ("g", "Group g is not a consumer group."),
        ("x", "Group x not found."),
    ):
        with pytest.raises(KafkaError) as refusal:
            describe(groups.shard, group_id)
        assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        assert refusal.value.message == message


def test_a_consumer_group_is_listed_with_its_state():
    groups = ConsumerGroups()

    def state(*words):
        found = list_groups(groups.shard, frozenset(), in_one_go(filter_words(words)))
        return [(group["group_type"], group["group_state"]) for group in found]

    groups.enter("a", "t")
    assert state() == state("Consumer") == [("consumer", "Stable")]
    assert state("classic") == []
    groups.enter("b", "t")
    assert state() == [("consumer", "Assigning")]
    groups.advance(1_000)
    groups.stay("b")
    assert state() == [("consumer", "Reconciling")]
    for member_id in "ab":
        groups.beat(member_id, -1)
    assert state() == [("consumer", "Empty")]


def test_it_is_no_classic_group():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    answer = admin.describe(groups.shard, "g", version=6)
    assert answer["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Group g is not a classic group."


def test_only_an_empty_group_is_deleted():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.carry_out(delete_groups(groups.shard, ["g"], "one"))
    (result,) = groups.answers["one"]["results"]
    assert result["error_code"] == ErrorCode.NON_EMPTY_GROUP
    groups.beat("a", -1)
    groups.carry_out_deletion()
    assert groups.shard.groups == {}
