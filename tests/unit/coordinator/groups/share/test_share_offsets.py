"""AlterShareGroupOffsets, and the partitions that DescribeShareGroupOffsets lists."""

from tests.support.coordinators.share_group_kit import RETRY_MS, ShareGroups, T, U, error_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.share import share_initialization, share_offsets
from wirebroker.coordinator.groups.share.share_offsets import STATE_EPOCH
from wirebroker.coordinator.groups.share.share_topics import NamedPartitions


def listed(groups, group_id="g"):
    token = groups.token()
    groups.carry_out(
        share_offsets.initialized_partitions(groups.shard, group_id, token, groups.moment)
    )
    return groups.answers[token][share_offsets.PARTITIONS]


def test_altered_partitions_make_a_new_group():
    groups = ShareGroups()
    assert groups.alter({T: [0, 2]}) == {STATE_EPOCH: 1}
    assert groups.share_topics().initializing[T] == NamedPartitions("t", frozenset({0, 2}))
    assert listed(groups) == {}
    groups.carry_out(
        share_initialization.initialized(groups.shard, "g", {T: {0, 2}}, None, groups.moment)
    )
    assert listed(groups) == {T: {0, 2}}
    assert groups.reloaded().share().topics == groups.share().topics


def test_without_topics_no_group_is_made():
    groups = ShareGroups()
    assert groups.alter({}) == {STATE_EPOCH: 1}
    assert groups.shard.groups == {}


def test_a_topic_without_partitions_makes_a_group():
    groups = ShareGroups()
    groups.alter({T: []})
    assert groups.share_topics().initializing[T].partitions == frozenset()


def test_a_member_waits_for_the_initialization_of_altered_topics():
    groups = ShareGroups()
    groups.alter({T: range(3)})
    groups.share_join("a", "t")
    assert groups.effects == []
    groups.advance(RETRY_MS)
    groups.share_stay("a")
    (effect,) = groups.effects
    assert effect.topics == {T: (frozenset({0, 1, 2}), 0)}


def test_a_group_with_members_is_refused():
    groups = ShareGroups()
    groups.share_join("a", "t")
    answer = groups.alter({T: [0]})
    assert error_of(answer) is ErrorCode.NON_EMPTY_GROUP
    assert answer["error_message"] == "The group is not empty."


def test_a_group_of_another_kind_is_refused():
    groups = ShareGroups()
    groups.commit()
    answer = groups.alter({T: [0]})
    assert error_of(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Group g is not a share group."


def test_groups_that_do_not_exist_have_no_partitions():
    groups = ShareGroups()
    groups.commit()
    assert (listed(groups), listed(groups, "none")) == ({}, {})


def test_altered_topics_are_no_longer_deleting():
    groups = ShareGroups()
    groups.share_join("a", "t", "u")
    groups.share_settle()
    groups.share_beat("a", -1)
    groups.begin_deletion(T, U)
    groups.alter({T: [0]})
    assert groups.share_topics().deleting == {U}
