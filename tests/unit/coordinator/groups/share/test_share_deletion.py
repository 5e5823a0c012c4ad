"""The end of share state: DeleteGroups, DeleteShareGroupOffsets, and deleted topics."""

import pytest

from tests.support.coordinators.share_group_kit import ShareGroups, T, U, error_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.share.share_deletion import ABSENT, HAS_TOPICS, STATE


def emptied(*names):
    groups = ShareGroups()
    groups.share_join("a", *names)
    groups.share_settle()
    groups.share_beat("a", -1)
    return groups


def test_a_group_is_deleted_after_its_state():
    groups = emptied("t", "u")
    assert groups.begin_group_deletion() == {STATE: {T: {0, 1, 2}, U: {0, 1}}}
    topics = groups.share_topics()
    assert (topics.initialized, topics.deleting) == ({}, {T, U})
    mark = len(groups.log)
    groups.carry_out_deletion()
    assert [record[0] for record in groups.since(mark)] == [
        "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA",
        "SHARE_GROUP_STATE_PARTITION_METADATA",
        "SHARE_GROUP_METADATA",
    ]
    assert groups.shard.groups == {}
    assert groups.reloaded().shard.groups == {}


def test_a_repeated_deletion_deletes_what_is_left():
    groups = emptied("t", "u")
    groups.begin_group_deletion()
    groups.delete_topic("u")
    assert groups.begin_group_deletion() == {STATE: {T: {0, 1, 2}}}
    assert groups.share_topics().deleting == {T}


def test_a_group_with_members_is_not_deleted():
    groups = ShareGroups()
    groups.share_join("a", "t")
    assert error_of(groups.begin_group_deletion()) is ErrorCode.NON_EMPTY_GROUP


def test_groups_of_other_kinds_have_no_share_state():
    groups = ShareGroups()
    groups.commit()
    assert groups.begin_group_deletion() == {STATE: {}}
    assert groups.begin_group_deletion("none") == {STATE: {}}


def test_a_group_without_topics_has_no_state():
    groups = ShareGroups()
    groups.share_join("a", "missing")
    groups.share_beat("a", -1)
    mark = len(groups.log)
    assert groups.begin_group_deletion() == {STATE: {}}
    assert groups.since(mark) == []


def test_topics_are_deleted_from_a_group():
    groups = emptied("t")
    answer = groups.begin_deletion(T, U)
    assert answer == {STATE: {T: {0, 1, 2}}, ABSENT: [U], HAS_TOPICS: True}
    assert groups.share_topics().deleting == {T}
    # Until the state is deleted, the request may be repeated.
    assert groups.begin_deletion(T)[STATE] == {T: range(3)}
    groups.finish_deletion(T)
    assert groups.share_topics().deleting == frozenset()
    assert groups.begin_deletion(T)[ABSENT] == [T]


def test_a_group_without_state_returns_nothing():
    groups = ShareGroups()
    groups.share_join("a", "missing")
    groups.share_beat("a", -1)
    assert groups.begin_deletion(T) == {STATE: {}, ABSENT: [], HAS_TOPICS: False}


@pytest.mark.parametrize(
    ("group_id", "code"),
    [("g", ErrorCode.NON_EMPTY_GROUP), ("none", ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_only_groups_without_members_lose_topics(group_id, code):
    groups = ShareGroups()
    groups.share_join("a", "t")
    assert error_of(groups.begin_deletion(T, group_id=group_id)) is code


def test_a_subscription_ends_the_deletion_of_a_topic():
    groups = emptied("t")
    groups.begin_deletion(T)
    groups.share_join("b", "t")
    topics = groups.share_topics()
    assert topics.deleting == frozenset()
    assert topics.initializing[T].partitions == {0, 1, 2}


@pytest.mark.parametrize("state", ["initializing", "initialized", "deleting"])
def test_topics_that_are_deleted_from_the_cluster_are_forgotten(state):
    groups = ShareGroups()
    groups.share_join("a", "t", "u")
    if state != "initializing":
        groups.share_settle()
    if state == "deleting":
        groups.share_beat("a", -1)
        groups.begin_deletion(T, U)
    groups.forget_topic("t")
    assert groups.share_topics().all_ids == {U}
    mark = len(groups.log)
    groups.create_topic("other", 9)
    groups.forget_topic("other")
    assert groups.since(mark) == []
