"""The replay of streams groups' records, in whatever order and completeness."""

import itertools

import pytest

from tests.support.coordinators.streams_kit import StreamsGroups, internal, subtopology, topology
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    WholeGroupKey,
    group_record,
    group_record_tombstone,
)
from wirebroker.coordinator.groups.streams.streams_member import TaskState, UserEndpoint

CURRENT = GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT
METADATA = GroupRecordKind.STREAMS_GROUP_METADATA


def busy():
    """Return a group with everything that records can hold."""
    groups = StreamsGroups(streams={"num_standby_replicas": 1, "assignment_interval_ms": 0})
    groups.enter("a", instance="i", rack="r", tags={"z": "1", "k": "v"}, endpoint=("h", 9))
    groups.enter("b")
    groups.settle()
    groups.enter("c")
    groups.stay("a")
    return groups


def test_restart_changes_nothing():
    groups = busy()
    assert groups.streams_member("a").state is TaskState.UNREVOKED_TASKS
    assert groups.reloaded().durable() == groups.durable()
    assert groups.reloaded(compacted=True).durable() == groups.durable()
    member = groups.reloaded().streams_member("a")
    assert (member.instance_id, member.rack_id) == ("i", "r")
    assert member.user_endpoint == UserEndpoint("h", 9)
    assert member.client_tags == {"k": "v", "z": "1"}


def test_order_of_the_last_records_does_not_matter():
    groups = StreamsGroups()
    groups.enter("a")
    assert len(groups.log) == 6
    for log in itertools.permutations(groups.log):
        assert StreamsGroups(log=list(log), image=groups.shard.image).durable() == groups.durable()


def test_groups_without_members_are_kept_and_deleted():
    groups = busy()
    for member_id, instance in (("a", "i"), ("b", None), ("c", None)):
        groups.beat(member_id, -1, instance=instance)
    assert groups.delete() is ErrorCode.NONE
    assert groups.reloaded().shard.groups == {}
    assert groups.reloaded(compacted=True).shard.groups == {}
    assert {record[0] for record in groups.since(len(groups.log) - 3)} == {
        "TARGET_ASSIGNMENT_METADATA",
        "METADATA",
        "TOPOLOGY",
    }


def test_group_with_members_is_not_deleted():
    assert busy().delete() is ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize(
    "kind", [kind for kind in GroupRecordKind if kind.name.startswith("STREAMS_")]
)
def test_tombstones_of_unknown_groups_do_nothing(kind):
    is_of_member = kind not in {
        METADATA,
        GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
        GroupRecordKind.STREAMS_GROUP_TOPOLOGY,
    }
    key = GroupMemberKey(kind, "g", "m") if is_of_member else WholeGroupKey(kind, "g")
    groups = StreamsGroups(log=[group_record_tombstone(key)])
    assert groups.shard.groups == {}


def test_tombstones_of_unknown_members_do_nothing():
    groups = busy()
    before = groups.durable()
    for kind in (CURRENT, GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA):
        groups.shard.replay(*group_record_tombstone(GroupMemberKey(kind, "g", "x")))
    assert groups.durable() == before


def test_descriptions_that_a_java_broker_stored_are_kept():
    key = WholeGroupKey(METADATA, "g")
    record = group_record(
        key,
        epoch=7,
        metadata_hash=1,
        stored_description_topology_epoch=3,
        failed_description_topology_epoch=2,
    )
    groups = StreamsGroups(log=[record])
    assert groups.streams_group().description_epochs == (3, 2)
    groups.enter("a")
    groups.beat("a", -1)
    assert groups.reloaded(compacted=True).streams_group().description_epochs == (3, 2)


def test_tasks_without_epochs_have_that_of_the_member():
    record = group_record(
        GroupMemberKey(CURRENT, "g", "a"),
        member_epoch=5,
        previous_member_epoch=4,
        state=9,
        active_tasks=[{"subtopology_id": "0", "partitions": [1, 2], "assignment_epochs": None}],
        standby_tasks=[{"subtopology_id": "1", "partitions": [3]}],
    )
    member = StreamsGroups(log=[record]).streams_member("a")
    assert member.assigned.active == {"0": {1: 5, 2: 5}}
    assert member.assigned.standby == {"1": frozenset({3})}
    assert member.state is TaskState.UNKNOWN


def test_members_of_a_loaded_group_get_their_tasks_again():
    groups = busy().reloaded()
    groups.settle()
    owned = [partition for name in "abc" for partition in groups.active(name).get("0", ())]
    assert sorted(owned) == [0, 1, 2]


def test_topology_with_everything_survives():
    whole = topology(
        subtopology("0", "t", sinks=["r"], copartition=[([0], [])]),
        subtopology(
            "1", repartition=[internal("r", 2, 1, a_b="c")], changelogs=[internal("counts")]
        ),
    )
    groups = StreamsGroups()
    groups.enter("a", topology=whole)
    assert groups.reloaded().streams_group().topology == groups.streams_group().topology
