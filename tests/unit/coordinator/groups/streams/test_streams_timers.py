"""Sessions, the time to give up tasks, the first delay and the interval between assignments."""

import pytest

from tests.support.coordinators.group_kit import REBALANCE_MS
from tests.support.coordinators.streams_kit import (
    ASSIGNMENT_INTERVAL_MS,
    SESSION_MS,
    StreamsGroups,
    tasks_in,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus

ALL = {"0": [0, 1, 2]}
DELAYED = TopicStatus.ASSIGNMENT_DELAYED


def statuses(answer):
    return [TopicStatus(status["status_code"]) for status in answer["status"]]


def keep(groups, *member_ids, ms):
    """Let time pass while members send heartbeats, without giving anything up."""
    for _ in range(ms // 5_000):
        groups.advance(5_000)
        for member_id in member_ids:
            member = groups.streams_member(member_id)
            groups.beat(member_id, member.epoch)


@pytest.mark.parametrize("restarts", [False, True])
def test_silent_member_is_removed(restarts):
    groups = StreamsGroups()
    groups.enter("a")
    if restarts:
        groups = groups.reloaded()
    groups.advance(SESSION_MS - 1)
    assert groups.streams_group().members
    groups.advance(1)
    group = groups.streams_group()
    assert (group.state, group.epoch, group.assignment_epoch) == ("Empty", 3, 3)
    assert group.assignment_ms == 0
    assert group.topology is not None


def test_own_session_timeout_counts():
    groups = StreamsGroups()
    groups.configure(streams_session_timeout_ms="50000")
    groups.enter("a")
    groups.advance(49_999)
    assert groups.streams_group().members
    groups.advance(1)
    assert not groups.streams_group().members


def test_member_that_keeps_its_tasks_is_removed():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.enter("b")
    groups.stay("a")
    keep(groups, "a", "b", ms=REBALANCE_MS - 5_000)
    assert "a" in groups.streams_group().members
    keep(groups, "b", ms=5_000)
    assert groups.streams_group().members.keys() == {"b"}


@pytest.mark.parametrize("restarts", [False, True])
def test_member_that_gives_up_in_time_stays(restarts):
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.enter("b")
    groups.stay("a")
    if restarts:
        groups = groups.reloaded()
    groups.stay("a")
    keep(groups, "a", "b", ms=2 * REBALANCE_MS)
    assert groups.streams_group().members.keys() == {"a", "b"}


def test_removal_that_fails_is_tried_again():
    groups = StreamsGroups()
    groups.enter("a")
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.advance(SESSION_MS)
    groups.fails_with = None
    assert groups.streams_group().members
    groups.advance(SESSION_MS)
    assert not groups.streams_group().members


def test_first_assignment_waits_for_further_members():
    groups = StreamsGroups(streams={"initial_rebalance_delay_ms": 3_000})
    answer = groups.enter("a")
    assert (answer["member_epoch"], tasks_in(answer), statuses(answer)) == (1, {}, [DELAYED])
    groups.advance(2_000)
    assert statuses(groups.enter("b")) == [DELAYED]
    assert statuses(groups.stay("a")) == [DELAYED]
    groups.advance(1_000)
    group = groups.streams_group()
    assert group.assignment_epoch == group.epoch == 3
    groups.stay("a")
    groups.stay("b")
    assert sorted([groups.active("a"), groups.active("b")], key=str) == [{"0": [0, 2]}, {"0": [1]}]


def test_heartbeat_assigns_if_the_delay_ended_without_a_topology():
    groups = StreamsGroups(streams={"initial_rebalance_delay_ms": 3_000})
    groups.enter("a")
    groups.advance(3_000)
    # As in Kafka, the first member's heartbeat does not leave its topology with the group.
    assert groups.streams_group().assignment_epoch == 1
    assert tasks_in(groups.stay("a")) == ALL


def test_delay_of_a_group_that_is_empty_again_does_nothing():
    groups = StreamsGroups(streams={"initial_rebalance_delay_ms": 3_000})
    groups.enter("a")
    groups.beat("a", -1)
    mark = len(groups.log)
    groups.advance(3_000)
    assert groups.since(mark) == []
    assert groups.delete() is ErrorCode.NONE
    assert len(groups.shard.timers) == 0


def test_own_delay_counts():
    groups = StreamsGroups(streams={"initial_rebalance_delay_ms": 3_000})
    groups.configure(streams_initial_rebalance_delay_ms="0")
    assert tasks_in(groups.enter("a")) == ALL


def test_next_assignment_waits_for_the_interval():
    groups = StreamsGroups()
    groups.enter("a")
    groups.advance(ASSIGNMENT_INTERVAL_MS - 1)
    answer = groups.enter("b")
    assert statuses(answer) == [DELAYED]
    assert groups.streams_group().state == "Assigning"
    assert groups.active("a") == ALL
    groups.advance(1)
    assert statuses(groups.stay("b")) == []
    assert groups.streams_group().assignment_epoch == 3


def test_own_interval_counts_within_the_limits():
    groups = StreamsGroups(streams={"max_assignment_interval_ms": 5_000})
    groups.configure(streams_assignment_interval_ms="9000")
    groups.enter("a")
    groups.advance(4_999)
    assert statuses(groups.enter("b")) == [DELAYED]
    groups.advance(1)
    assert statuses(groups.stay("b")) == []
