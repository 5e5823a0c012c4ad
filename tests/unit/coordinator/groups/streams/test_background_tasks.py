"""Target assignments of large groups, which are computed beside the shard."""

import pytest

from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.streams_kit import StreamsGroups, subtopology, tasks_in, topology
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.streams import task_assignment
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus

PLAIN = topology(subtopology("0", "t"))


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(task_assignment, "MOST_AT_ONCE", 4)
    monkeypatch.setattr(background, "_MOST_ITEMS", 1)


def large():
    """Return a group whose first member waits for its tasks."""
    image = one_broker(*topic("t", 1, partitions=8))
    groups = StreamsGroups(image=image, streams={"assignment_interval_ms": 0})
    answer = groups.enter("a", topology=PLAIN)
    assert tasks_in(answer) == {}
    assert [status["status_code"] for status in answer["status"]] == [
        TopicStatus.ASSIGNMENT_DELAYED
    ]
    return groups


def test_members_get_their_tasks_after_the_computation():
    groups = large()
    groups.work()
    # The first heartbeat has left no topology with the new group.
    groups.stay("a")
    groups.work()
    assert tasks_in(groups.stay("a")) == {"0": list(range(8))}
    assert groups.streams_group().state == "Stable"
    assert groups.streams_group().background_work is None


def test_one_computation_runs_at_a_time():
    groups = large()
    groups.work()
    groups.stay("a")
    groups.enter("b", topology=PLAIN)
    assert len(groups.effects) == 1
    groups.settle("a", "b")
    assert len(groups.active("a")["0"]) == len(groups.active("b")["0"]) == 4


def test_member_that_leaves_meanwhile_gets_nothing():
    groups = large()
    groups.enter("b", topology=PLAIN)
    groups.settle()
    groups.enter("c", topology=PLAIN)
    groups.work_a_step()
    groups.beat("b", -1)
    groups.work()
    assert groups.streams_group().target.keys() == {"a", "c"}
    groups.settle()
    assert sorted(groups.active("a")["0"] + groups.active("c")["0"]) == list(range(8))


def test_static_member_that_returns_meanwhile_gets_its_tasks():
    groups = large()
    groups.enter("b", topology=PLAIN, instance="i", process="p")
    groups.stay("a")
    groups.beat("b", -2, instance="i")
    groups.work_a_step()
    groups.enter("new", topology=PLAIN, instance="i", process="p")
    groups.work()
    groups.settle()
    assert len(groups.active("new")["0"]) == 4


def test_group_that_is_deleted_meanwhile_stays_deleted():
    groups = large()
    groups.stay("a")
    groups.work_a_step()
    groups.beat("a", -1)
    assert groups.delete() is ErrorCode.NONE
    groups.work()
    assert groups.shard.groups == {}
    assert groups.reloaded().shard.groups == {}


def test_group_without_members_needs_no_computation():
    groups = large()
    groups.stay("a")
    groups.beat("a", -1)
    mark = len(groups.log)
    groups.work()
    assert groups.since(mark) == []
    assert groups.streams_group().background_work is None


def test_failed_portion_is_tried_again():
    groups = large()
    groups.stay("a")
    groups.work_a_step()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.work_a_step()
    groups.fails_with = None
    groups.work()
    assert groups.streams_group().background_work is None
    groups.settle()
    assert groups.active("a") == {"0": list(range(8))}


def test_first_assignment_after_the_delay_may_be_large():
    image = one_broker(*topic("t", 1, partitions=8))
    groups = StreamsGroups(image=image, streams={"initial_rebalance_delay_ms": 3_000})
    groups.enter("a", topology=PLAIN)
    groups.stay("a")
    groups.advance(3_000)
    groups.work()
    assert tasks_in(groups.stay("a")) == {"0": list(range(8))}


def test_too_many_tasks_are_refused(monkeypatch):
    groups = large()
    groups.work()
    monkeypatch.setattr(task_assignment, "MOST_TASKS", 7)
    answer = groups.stay("a")
    assert groups.code(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.streams_group().background_work is None
    monkeypatch.setattr(task_assignment, "MOST_TASKS", 8)
    groups.settle()
