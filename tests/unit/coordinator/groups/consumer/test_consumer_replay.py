"""Replay of consumer groups' records: whole logs, compacted ones, and records of other versions."""

import itertools

import pytest

from tests.support.coordinators.consumer_kit import (
    ConsumerGroups,
    T,
    compacted_log,
    content,
)
from wirebroker.codecs.coordinator_records import CoordinatorRecord
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    WholeGroupKey,
    group_record,
    group_record_tombstone,
)
from wirebroker.coordinator.groups.consumer.consumer_member import ClassicUse, MemberState

GROUP = WholeGroupKey(GroupRecordKind.CONSUMER_GROUP_METADATA, "g")
PARTITIONS = WholeGroupKey(GroupRecordKind.CONSUMER_GROUP_PARTITION_METADATA, "g")
CURRENT = GroupMemberKey(GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", "a")
SUBSCRIPTION = GroupMemberKey(GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA, "g", "a")


def long_log():
    """Return the log of a group with every kind of record."""
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i", rack="r", assignor="range")
    groups.enter("b", names=[], regex="u.*")
    groups.work()
    groups.settle()
    groups.enter("c", "t")
    groups.beat("a", -2, instance="i")
    groups.enter("d", "t", instance="i")
    groups.advance(1_000)
    groups.stay("d")
    groups.enter("e", "u")
    groups.beat("e", -1)
    return groups


def test_every_prefix_of_a_log_is_loaded_as_it_was_made():
    log = long_log().log
    for end in range(len(log) + 1):
        whole = ConsumerGroups(log=log[:end])
        for start in range(0, end, 7):
            half = ConsumerGroups(log=[*compacted_log(log[:start]), *log[start:end]])
            assert half.durable() == whole.durable()


def test_records_may_come_in_any_order():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i")
    expected = content(groups.consumer())
    for log in itertools.permutations(groups.log):
        assert content(ConsumerGroups(log=list(log)).consumer()) == expected


def test_any_record_makes_the_group_and_the_last_tombstone_deletes_it():
    groups = long_log()
    for record in groups.log:
        shard = ConsumerGroups().shard
        shard.replay(*record)
        assert ("g" in shard.groups) == (record.value is not None)
    groups.settle()
    for member_id in tuple(groups.consumer().members):
        groups.beat(member_id, -1, instance=groups.consumer_member(member_id).instance_id)
    groups.carry_out_deletion()
    assert groups.shard.groups == {}
    assert groups.reloaded().shard.groups == {}
    assert compacted_log(groups.log) == []
    assert groups.since(len(groups.log) - 2) == [
        ("PARTITION_METADATA", None),
        ("METADATA", None),
    ]


def test_tombstones_of_unknown_groups_and_members_do_nothing():
    groups = ConsumerGroups()
    for key in (GROUP, PARTITIONS, CURRENT, SUBSCRIPTION):
        groups.shard.replay(*group_record_tombstone(key))
    assert groups.shard.groups == {}
    groups.enter("b", "t")
    before = content(groups.consumer())
    for key in (CURRENT, SUBSCRIPTION):
        groups.shard.replay(*group_record_tombstone(key))
    assert content(groups.consumer()) == before


def test_the_tombstone_of_a_current_assignment_frees_its_partitions():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.shard.replay(*group_record_tombstone(CURRENT))
    member = groups.consumer_member("a")
    assert (member.epoch, member.previous_epoch, member.assigned) == (-1, -1, {})
    assert groups.consumer().partition_epochs.of(T, 0) == -1


@pytest.mark.parametrize("epochs", [{}, {"assignment_epochs": [7]}])
@pytest.mark.parametrize(("epoch", "expected"), [(5, 5), (-2, 0)])
def test_partitions_without_epochs_have_the_members(epoch, expected, epochs):
    groups = ConsumerGroups()
    partitions = [{"topic_id": T, "partitions": [0, 1], **epochs}]
    groups.shard.replay(*group_record(CURRENT, member_epoch=epoch, assigned_partitions=partitions))
    assert groups.consumer_member("a").assigned == {T: {0: expected, 1: expected}}


def test_a_state_of_a_later_version_is_unknown():
    groups = ConsumerGroups()
    groups.shard.replay(*group_record(CURRENT, member_epoch=3, state=9))
    assert groups.consumer_member("a").state is MemberState.UNKNOWN


def test_a_member_of_the_classic_protocol_is_loaded():
    groups = ConsumerGroups()
    protocols = [{"name": "range", "metadata": b"m"}]
    classic = {"session_timeout_ms": 7, "supported_protocols": protocols}
    groups.shard.replay(*group_record(SUBSCRIPTION, classic_member_metadata=classic))
    assert groups.consumer_member("a").classic == ClassicUse(7, (("range", b"m"),))
    assert groups.consumer().classic_count == 1
    assert groups.consumer().supports_classic("consumer", {"range": b""})
    assert not groups.consumer().supports_classic("consumer", {"sticky": b""})
    assert not groups.consumer().supports_classic("connect", {"range": b""})


def test_the_partition_metadata_of_former_versions_is_deleted_once():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.carry_out_records([group_record(PARTITIONS)])
    loaded = groups.reloaded()
    assert loaded.consumer().has_partition_metadata
    mark = len(loaded.log)
    loaded.stay("a")
    loaded.stay("a")
    assert loaded.since(mark) == [("PARTITION_METADATA", None)]


def test_a_later_classic_record_replaces_the_group():
    groups = ConsumerGroups()
    groups.stable()
    classic = [record for record in groups.log if record.value is not None]
    groups = ConsumerGroups()
    groups.enter("a", "t")
    loaded = ConsumerGroups(log=[*groups.log, *classic])
    assert loaded.group().state == "Stable"
    loaded = ConsumerGroups(log=[*classic, *groups.log])
    assert loaded.consumer().members.keys() == {"a"}


def test_a_record_of_a_later_version_stops_the_replay():
    record = group_record(GROUP, epoch=1)
    later = CoordinatorRecord(record.key, b"\x00\x09" + (record.value or b"")[2:])
    with pytest.raises(KafkaError) as refusal:
        ConsumerGroups(log=[later])
    assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION
