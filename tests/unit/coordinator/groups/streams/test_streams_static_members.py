"""Static members of streams groups: they return under their instance id and keep their tasks."""

import pytest

from tests.support.coordinators.streams_kit import SESSION_MS, StreamsGroups, tasks_in
from wirebroker.codecs.errors import ErrorCode

ALL = {"0": [0, 1, 2]}


def settled():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a", instance="i", process="p")
    groups.enter("b", process="q")
    groups.settle()
    return groups


@pytest.mark.parametrize("member_id", ["a", "new"])
def test_member_that_left_for_a_while_gets_its_tasks_back(member_id):
    groups = settled()
    tasks, epoch = groups.active("a"), groups.streams_group().epoch
    groups.beat("a", -2, instance="i")
    assert groups.streams_group().state == "Reconciling"
    assert groups.streams_member("a").assigned.active["0"] == dict.fromkeys(tasks["0"], 0)
    assert tasks_in(groups.enter(member_id, instance="i", process="p")) == tasks
    group = groups.streams_group()
    assert (group.epoch, group.state) == (epoch, "Stable")
    assert group.members.keys() == {member_id, "b"}
    assert group.static_members == {"i": member_id}


def test_member_that_returns_in_another_process_starts_a_new_assignment():
    groups = settled()
    epoch = groups.streams_group().epoch
    groups.beat("a", -2, instance="i")
    groups.enter("a", instance="i", process="r")
    assert groups.streams_group().epoch == epoch + 1
    groups.settle()
    assert sorted(groups.active("a")["0"] + groups.active("b")["0"]) == [0, 1, 2]


def test_address_of_a_static_member_does_not_matter():
    groups = settled()
    epoch = groups.streams_group().epoch
    groups.stay("a", client_id="another", rebalance_ms=7)
    assert groups.streams_member("a").client_id == "another"
    assert groups.streams_group().epoch == epoch


@pytest.mark.parametrize(
    ("member_id", "epoch", "instance", "code"),
    [
        ("x", 0, "i", ErrorCode.UNRELEASED_INSTANCE_ID),
        ("a", 0, "i", ErrorCode.UNRELEASED_INSTANCE_ID),
        ("x", 3, "i", ErrorCode.FENCED_INSTANCE_ID),
        ("x", -1, "i", ErrorCode.FENCED_INSTANCE_ID),
        ("x", -2, "i", ErrorCode.FENCED_INSTANCE_ID),
        ("a", 3, "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", -1, "j", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_instance_id_belongs_to_one_member(member_id, epoch, instance, code):
    groups = settled()
    join = groups.enter if epoch == 0 else groups.beat
    arguments = (member_id,) if epoch == 0 else (member_id, epoch)
    assert groups.code(join(*arguments, instance=instance)) is code


def test_member_that_is_away_is_removed_with_its_session():
    groups = settled()
    groups.beat("a", -2, instance="i")
    for _ in range(10):
        groups.advance(SESSION_MS // 9)
        groups.stay("b")
    assert groups.streams_group().members.keys() == {"b"}
    groups.settle()
    assert groups.active("b") == ALL


def test_member_leaves_for_good():
    groups = settled()
    groups.beat("a", -1, instance="i")
    assert groups.streams_group().static_members == {}
    groups.settle()
    assert groups.active("b") == ALL


def test_failed_return_leaves_the_former_member():
    groups = settled()
    groups.beat("a", -2, instance="i")
    before = groups.durable()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.enter("new", instance="i", process="p")
    groups.fails_with = None
    assert groups.durable() == before
    groups.enter("new", instance="i", process="p")
    assert groups.streams_group().members.keys() == {"new", "b"}
