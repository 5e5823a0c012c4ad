"""A shard's load, life cycle and responses."""

import pytest

from tests.support.coordinators.group_kit import Groups
from wirebroker.codecs.coordinator_records import group_metadata_record, group_tombstone
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.groups.classic.classic_group import GroupState


def recorded(generation=4, **fields):
    member = {
        "member_id": "m",
        "group_instance_id": "i",
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout": -1,
        "session_timeout": 7_000,
        "subscription": b"s",
        "assignment": b"a",
    }
    values = {
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": "range",
        "leader": "m",
        "current_state_timestamp": 5,
        "members": [member],
    }
    return group_metadata_record("g", **(values | fields))


def test_group_state_is_that_of_its_last_record():
    groups = Groups(log=[recorded(4), recorded(5, members=[], protocol=None, leader=None)])
    group = groups.group()
    assert (group.state, group.generation, group.state_timestamp_ms) == (GroupState.EMPTY, 5, 5)
    assert group.roster.static_members == {}
    groups = Groups(log=[recorded(5, members=[], protocol=None, leader=None), recorded(6)])
    assert groups.group().state is GroupState.STABLE
    assert groups.group().roster.static_members == {"i": "m"}


def test_without_a_rebalance_timeout_the_session_timeout_counts():
    assert Groups(log=[recorded()]).member("m").rebalance_timeout_ms == 7_000


def test_a_member_with_new_metadata_replaces_the_former_one_at_load():
    newer = recorded(
        5,
        members=[
            {
                "member_id": "m",
                "group_instance_id": None,
                "client_id": "c",
                "client_host": "/h",
                "rebalance_timeout": 1,
                "session_timeout": 2,
                "subscription": b"newer",
                "assignment": b"",
            }
        ],
    )
    groups = Groups(log=[recorded(), newer])
    assert groups.member("m").protocols == (("range", b"newer"),)
    groups.group().roster.check_support("range")


def test_a_tombstone_removes_the_group():
    assert Groups(log=[recorded(), group_tombstone("g")]).shard.groups == {}
    assert Groups(log=[group_tombstone("g")]).shard.groups == {}


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"\x00",
        b"\x00\x01",
        b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00",
        b"\x00\x01\x00\x01g\x00\x09t\x00\x00\x00\x00",
        b"\x00\x02\x00\x09g",
        b"\x00\x02\x00\x01gg",
    ],
)
def test_a_key_that_cannot_be_read_stops_the_replay(key):
    with pytest.raises(MalformedFrameError):
        Groups().shard.replay(key, b"\x00\x04")


def test_a_group_of_a_future_version_stops_the_replay():
    with pytest.raises(KafkaError) as refusal:
        Groups().shard.replay(b"\x00\x02\x00\x01g", b"\x00\x63")
    assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_waiting_requests_are_answered_when_the_shard_is_unloaded():
    groups = Groups()
    leader, follower = groups.stable(2)
    joining = groups.join(leader)
    groups.carry_out(groups.shard.on_unloaded())
    assert groups.error(joining) is ErrorCode.NOT_COORDINATOR
    groups = Groups()
    leader, follower = groups.stable(2)
    groups.join(leader)
    groups.join(follower)
    syncing = groups.sync(follower)
    groups.carry_out(groups.shard.on_unloaded())
    assert groups.error(syncing) is ErrorCode.NOT_COORDINATOR


def test_joining_a_group_with_unrecorded_emptiness_succeeds():
    groups = Groups()
    groups.join(instance="i")
    groups.advance(0)
    groups.fails_with = ErrorCode.UNKNOWN_SERVER_ERROR
    groups.advance(10_000)
    assert (groups.group().state, groups.group().is_unrecorded) == (GroupState.EMPTY, True)
    groups.join(instance="i")
    assert (groups.group().state, groups.group().is_unrecorded) == (
        GroupState.PREPARING_REBALANCE,
        False,
    )
    assert list(groups.group().roster.static_members) == ["i"]
