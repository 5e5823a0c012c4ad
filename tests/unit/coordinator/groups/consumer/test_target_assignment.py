"""Target assignments: when they are computed, their records, and computation in the background."""

from dataclasses import replace

import pytest

from tests.support.coordinators.consumer_kit import (
    ASSIGNMENT_INTERVAL_MS,
    ConsumerGroups,
    T,
    U,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.consumer import target_assignment
from wirebroker.coordinator.groups.consumer.consumer_records import subscription_record
from wirebroker.coordinator.groups.consumer.target_assignment import is_due, job_of

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def partitions_of(groups, member_id):
    return {topic: set(found) for topic, found in groups.consumer().target[member_id].items()}


def has_disjoint_targets(groups):
    found = [
        (topic, index)
        for target in groups.consumer().target.values()
        for topic, indexes in target.items()
        for index in indexes
    ]
    return len(found) == len(set(found))


@pytest.mark.parametrize(
    ("assignment_ms", "interval_ms", "wall_ms", "due"),
    [
        (0, 1_000, 1, True),
        (5_000, 0, 5_000, True),
        (5_000, 1_000, 5_999, False),
        (5_000, 1_000, 6_000, True),
        (5_000, 1_000, 4_000, False),
    ],
)
def test_an_assignment_is_due_after_the_interval(assignment_ms, interval_ms, wall_ms, due):
    assert is_due(assignment_ms, interval_ms, wall_ms) is due


def test_members_that_join_together_wait_for_the_interval():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    answer = groups.enter("b", "t")
    # It is a member in the epoch of the last assignment.
    assert (answer["member_epoch"], answer["assignment"]) == (2, {"topic_partitions": []})
    assert (groups.consumer().epoch, groups.consumer().state) == (3, "Assigning")
    groups.advance(ASSIGNMENT_INTERVAL_MS - 1)
    groups.stay("b")
    assert groups.consumer().state == "Assigning"
    groups.advance(1)
    groups.stay("b")
    assert groups.consumer().state == "Reconciling"


def test_only_changed_targets_are_recorded():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    mark = len(groups.log)
    groups.enter("b", "u")
    targets = [record for record in groups.since(mark) if record[0].startswith("TARGET")]
    assert targets == [
        (
            "TARGET_ASSIGNMENT_MEMBER",
            "b",
            {"topic_partitions": [{"topic_id": U, "partitions": [0, 1]}]},
        ),
        (
            "TARGET_ASSIGNMENT_METADATA",
            {"assignment_epoch": 3, "assignment_timestamp": groups.moment.wall_ms},
        ),
    ]


def test_a_member_without_partitions_has_an_empty_target():
    groups = ConsumerGroups()
    groups.enter("a", "missing")
    assert groups.since(0)[2] == ("TARGET_ASSIGNMENT_MEMBER", "a", {"topic_partitions": []})
    mark = len(groups.log)
    groups.advance(1_000)
    groups.enter("b", "u")
    assert "a" not in [record[1] for record in groups.since(mark)]


def test_deleted_and_new_topics_change_the_targets():
    groups = ConsumerGroups()
    groups.enter("a", "t", "u")
    groups.delete_topic("t")
    groups.grow_topic("u", 3)
    groups.advance(1_000)
    groups.stay("a")
    assert partitions_of(groups, "a") == {U: {0, 1, 2}}
    groups.create_topic("t", 7)
    groups.advance(1_000)
    groups.stay("a")
    assert partitions_of(groups, "a") == {U: {0, 1, 2}, T[:-1] + b"\x07": {0}}


def test_topics_without_subscribers_do_not_raise_the_epoch():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.create_topic("other", 9)
    groups.grow_topic("u", 4)
    mark = len(groups.log)
    groups.stay("a")
    assert len(groups.log) == mark


@pytest.mark.parametrize(
    ("assignors", "expected"),
    [
        ((None, None, None), "uniform"),
        (("range", None, None), "range"),
        (("range", "uniform", None), "uniform"),
        (("range", "range", "uniform"), "range"),
    ],
)
def test_the_assignor_that_most_members_prefer_is_used(assignors, expected):
    groups = ConsumerGroups()
    for member_id, assignor in zip("abc", assignors, strict=True):
        groups.enter(member_id, "t", assignor=assignor)
    assert groups.consumer().preferred_assignor("uniform") == expected


def test_the_preference_of_a_member_that_returns_counts_once():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i", assignor="range")
    groups.enter("b", "t", assignor="uniform")
    groups.beat("a", -2, instance="i")
    groups.advance(1_000)
    groups.enter("c", "u", instance="i", assignor="range")
    # Two assignors with one member each: the default one, which balances among all topics.
    group = groups.consumer()
    job = job_of(group, group.epoch, groups.shard.image.topics, "uniform", group.members["c"])
    assert job.assignor == "uniform"


# -- in the background ---------------------------------------------------------------------------


@pytest.fixture
def large(monkeypatch):
    """Compute every assignment in the background; install it member by member."""
    monkeypatch.setattr(target_assignment, "MOST_AT_ONCE", 0)
    monkeypatch.setattr(background, "_MOST_ITEMS", 1)


@pytest.mark.usefixtures("large")
def test_the_members_of_a_large_group_get_their_targets_later():
    groups = ConsumerGroups()
    answer = groups.enter("a", "t")
    # Epoch 0 would be a request to join again.
    assert (answer["member_epoch"], answer["assignment"]) == (1, {"topic_partitions": []})
    assert groups.consumer().state == "Assigning"
    # The new group does not know that the heartbeat that made it began a computation.
    groups.stay("a")
    groups.stay("a")
    assert len(groups.effects) == 2
    mark = len(groups.log)
    groups.work()
    assert groups.since(mark) == [
        (
            "TARGET_ASSIGNMENT_MEMBER",
            "a",
            {"topic_partitions": [{"topic_id": T, "partitions": [0, 1, 2]}]},
        ),
        (
            "TARGET_ASSIGNMENT_METADATA",
            {"assignment_epoch": 2, "assignment_timestamp": groups.moment.wall_ms},
        ),
    ]
    assert groups.stay("a")["member_epoch"] == 2
    assert groups.consumer().state == "Stable"


@pytest.mark.usefixtures("large")
def test_a_member_that_left_meanwhile_gets_no_target():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.enter("b", "t")
    groups.work_a_step()
    groups.beat("b", -1)
    groups.work()
    assert groups.consumer().target.keys() == {"a"}
    groups.settle()
    assert partitions_of(groups, "a") == {T: {0, 1, 2}}


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_static_member_that_returned_meanwhile_gets_its_part_of_the_target(steps):
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i")
    groups.work()
    groups.settle()
    groups.advance(1_000)
    groups.enter("b", "t")
    for _ in range(steps):
        groups.work_a_step()
    groups.beat("a", -2, instance="i")
    groups.enter("c", "t", instance="i")
    groups.work()
    assert has_disjoint_targets(groups)
    groups.settle()


@pytest.mark.usefixtures("large")
def test_a_computation_that_fails_is_begun_again():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.work_a_step()
    groups.fails_with = NOT_AVAILABLE
    groups.work_a_step()
    groups.fails_with = None
    groups.work()
    assert groups.consumer().state == "Assigning"
    groups.settle()


@pytest.mark.usefixtures("large")
def test_the_rest_of_a_failed_computation_is_not_installed_beside_the_next():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.work()
    groups.settle()
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.work_a_step()
    groups.fails_with = NOT_AVAILABLE
    groups.work_a_step()
    groups.fails_with = None
    # The next heartbeat begins another, while the first one goes on.
    groups.enter("c", "t")
    for number in (1, 1, 1, 1, 0):
        groups.work_a_step(number)
    groups.work()
    assert has_disjoint_targets(groups)
    assert groups.consumer().target.keys() == {"a", "b", "c"}
    groups.settle()


@pytest.mark.usefixtures("large")
def test_a_failed_record_of_a_heartbeat_begins_no_computation():
    groups = ConsumerGroups()
    groups.fails_with = NOT_AVAILABLE
    groups.enter("a", "t")
    assert groups.effects == []
    groups.fails_with = None
    groups.enter("a", "t")
    assert len(groups.effects) == 1


def test_an_assignor_that_only_another_coordinator_has_is_replaced_by_the_default():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    member = groups.consumer_member("a")
    groups.carry_out_records([subscription_record("g", replace(member, server_assignor="java"))])
    groups.advance(1_000)
    answer = groups.enter("b", "t")
    assert answer["member_epoch"] == 3
