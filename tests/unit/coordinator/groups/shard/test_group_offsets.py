"""OffsetCommit, OffsetFetch, OffsetDelete."""

import pytest

from tests.support.coordinators.group_kit import START_MS, Groups
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.shard import offsets as group_offsets

TOPIC_ID = bytes(range(16))
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x04read"


def fetched(groups, topic="t", partition=0, topic_id=bytes(16)):
    [result] = group_offsets.fetch(groups.shard, "g", [(topic, topic_id, [partition])])
    return result["partitions"][0]


def deleted(groups, *topics, group_id="g"):
    token = groups.token()
    requested = [(topic, [0]) for topic in topics]
    groups.carry_out(group_offsets.delete(groups.shard, group_id, requested, token))
    return [result["partitions"][0]["error_code"] for result in groups.answers[token]["topics"]]


def test_a_commit_without_membership_makes_a_simple_group():
    groups = Groups()
    assert groups.commit(offset=7, metadata="where I am") is ErrorCode.NONE
    assert fetched(groups) == {
        "partition_index": 0,
        "committed_offset": 7,
        "committed_leader_epoch": 3,
        "metadata": "where I am",
    }
    assert groups.group().state is GroupState.EMPTY
    assert groups.group().protocol_type is None
    assert groups.reloaded().committed() == 7


def test_newest_commit_wins_also_after_a_load():
    groups = Groups()
    for offset in (7, 9, 8):
        groups.commit(offset=offset)
    assert groups.committed() == groups.reloaded().committed() == 8
    assert groups.shard.offsets.count == 1


def test_uncommitted_partition_has_offset_minus_one():
    groups = Groups()
    assert fetched(groups)["committed_offset"] == -1
    groups.commit()
    assert fetched(groups, "other")["committed_offset"] == -1
    assert fetched(groups, partition=1)["committed_offset"] == -1


def test_null_metadata_becomes_empty():
    groups = Groups()
    groups.commit(metadata=None)
    assert fetched(groups)["metadata"] == ""


def test_metadata_is_limited_in_java_characters():
    groups = Groups(offset_metadata_max_bytes=4)
    assert groups.commit(metadata="éééé") is ErrorCode.NONE
    assert groups.commit(metadata="\U0001f600\U0001f600") is ErrorCode.NONE
    assert groups.commit(metadata="\U0001f600\U0001f600a") is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert groups.commit(metadata="12345", offset=99) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert groups.committed() == 5


def test_refused_commit_creates_a_group_until_the_next_load():
    groups = Groups(offset_metadata_max_bytes=4)
    assert groups.commit(metadata="12345") is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert groups.group().state is GroupState.EMPTY
    assert groups.reloaded().shard.groups == {}


def test_members_commit_in_their_generation():
    groups = Groups()
    [member] = groups.stable()
    assert groups.commit(member, generation=1) is ErrorCode.NONE
    assert groups.commit(member, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert groups.commit("somebody", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit() is ErrorCode.UNKNOWN_MEMBER_ID, "the group is not empty"
    groups.leave(member)
    assert groups.commit(member, generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit() is ErrorCode.NONE


def test_member_may_commit_in_a_rebalance_until_it_has_rejoined():
    groups = Groups()
    leader, follower = groups.stable(2)
    groups.join(leader)
    assert groups.commit(follower, generation=1) is ErrorCode.NONE
    groups.join(follower)
    assert groups.commit(follower, generation=1) is ErrorCode.ILLEGAL_GENERATION
    assert groups.commit(follower, generation=2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_unknown_group_is_named_as_such_from_v9_on():
    groups = Groups()
    assert groups.commit("m", generation=1, version=9) is ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.commit("m", generation=1, version=8) is ErrorCode.ILLEGAL_GENERATION


def test_unwritable_commit_is_not_visible():
    groups = Groups()
    groups.fails_with = ErrorCode.NOT_COORDINATOR
    assert groups.commit() is ErrorCode.NOT_COORDINATOR
    assert groups.committed() is None
    assert groups.shard.groups == {}


def test_commit_of_a_recreated_topic_is_not_returned_by_id():
    groups = Groups()
    groups.commit(topic_id=TOPIC_ID)
    assert fetched(groups, topic_id=TOPIC_ID)["committed_offset"] == 5
    assert fetched(groups, topic_id=bytes(reversed(TOPIC_ID)))["committed_offset"] == -1
    assert fetched(groups)["committed_offset"] == 5, "a request by name ignores the id"


def test_all_offsets_of_a_group_are_grouped_by_topic():
    groups = Groups()
    for topic, partition in (("a", 0), ("b", 0), ("a", 1)):
        groups.commit(topic=topic, partition=partition)
    fetched_topics = group_offsets.fetch_all(groups.shard, "g")
    assert [(entry["name"], len(entry["partitions"])) for entry in fetched_topics] == [
        ("a", 2),
        ("b", 1),
    ]
    assert group_offsets.fetch_all(groups.shard, "other") == []


def test_a_retention_time_becomes_an_expiry_time():
    groups = Groups()
    groups.commit(retention_ms=1_000)
    committed = groups.shard.offsets.find("g", "t", 0)
    assert committed is not None
    assert committed.expire_timestamp_ms == START_MS + 1_000
    assert committed.commit_timestamp_ms == START_MS


def test_offsets_of_topics_that_members_read_are_not_deleted():
    groups = Groups()
    [member] = groups.stable(known=(("range", SUBSCRIPTION),))
    for topic in ("read", "t"):
        groups.commit(member, generation=1, topic=topic)
    assert deleted(groups, "read", "t") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert groups.committed("read") == 5
    assert groups.committed("t") is None
    assert groups.reloaded().committed("t") is None


def test_deleting_an_uncommitted_offset_writes_no_record():
    groups = Groups()
    groups.commit()
    length = len(groups.log)
    assert deleted(groups, "other") == [ErrorCode.NONE]
    assert len(groups.log) == length


def test_offset_deletion_is_refused_if_subscription_is_unknown():
    groups = Groups()
    with pytest.raises(KafkaError) as refusal:
        deleted(groups, "t")
    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    groups.stable(protocol_type="connect")
    with pytest.raises(KafkaError) as refusal:
        deleted(groups, "t")
    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP


def test_a_subscription_that_cannot_be_read_counts_as_all_topics():
    groups = Groups()
    groups.stable()
    assert groups.group().subscribed_topics is None
    assert deleted(groups, "t") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
