"""Static members of consumer groups: they leave for a while and return under another member id."""

import pytest

from tests.support.coordinators.consumer_kit import (
    CONSUMER_SESSION_MS,
    ConsumerGroups,
    T,
    U,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.consumer import prepared_step
from wirebroker.coordinator.groups.consumer.consumer_member import MemberState


@pytest.fixture(autouse=True, params=[500, 0], ids=["at once", "prepared"])
def few_topics(request, monkeypatch):
    """Let operations compute the steps of members themselves, or prepare them."""
    monkeypatch.setattr(prepared_step, "_FEW", request.param)


def away(*, assignor=None, names=("t",)):
    """Return a group whose static member `a` with instance id `i` is away."""
    groups = ConsumerGroups()
    groups.enter("a", *names, instance="i", assignor=assignor)
    assert groups.code(groups.beat("a", -2, instance="i")) is ErrorCode.NONE
    return groups


def test_a_member_that_leaves_for_a_while_keeps_its_partitions():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i")
    mark = len(groups.log)
    answer = groups.beat("a", -2, instance="i")
    assert answer == {"member_id": "a", "member_epoch": -2}
    (record,) = groups.since(mark)
    assert record == (
        "CURRENT_MEMBER_ASSIGNMENT",
        "a",
        {
            "member_epoch": -2,
            "previous_member_epoch": 0,
            "state": 0,
            "assigned_partitions": [
                {"topic_id": T, "partitions": [0, 1, 2], "assignment_epochs": [0, 0, 0]}
            ],
            "partitions_pending_revocation": [],
        },
    )
    assert groups.consumer().state == "Reconciling"
    # Others do not get them.
    groups.advance(1_000)
    groups.enter("b", "t")
    assert groups.consumer_member("b").assigned == {}


def test_a_member_that_leaves_for_a_while_gives_up_what_it_was_to_give_up():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i")
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.stay("a")
    assert groups.consumer_member("a").state is MemberState.UNREVOKED_PARTITIONS
    groups.beat("a", -2, instance="i")
    member = groups.consumer_member("a")
    assert (member.state, member.revoking) == (MemberState.UNREVOKED_PARTITIONS, {})
    groups.stay("b")
    assert groups.consumer_member("b").state is MemberState.STABLE


def test_the_records_of_a_member_that_returns():
    groups = away()
    mark = len(groups.log)
    answer = groups.enter("b", "t", instance="i")
    assert (answer["member_id"], answer["member_epoch"]) == ("b", 2)
    assert answer["assignment"] == {"topic_partitions": [{"topic_id": T, "partitions": [0, 1, 2]}]}
    records = groups.since(mark)
    assert [record[:2] for record in records] == [
        ("CURRENT_MEMBER_ASSIGNMENT", "a"),
        ("TARGET_ASSIGNMENT_MEMBER", "a"),
        ("MEMBER_METADATA", "a"),
        ("MEMBER_METADATA", "b"),
        ("TARGET_ASSIGNMENT_MEMBER", "b"),
        ("CURRENT_MEMBER_ASSIGNMENT", "b"),
        ("CURRENT_MEMBER_ASSIGNMENT", "b"),
    ]
    assert [record[2] for record in records[:3]] == [None] * 3
    partitions = [{"topic_id": T, "partitions": [0, 1, 2], "assignment_epochs": [0, 0, 0]}]
    assert records[5][2] == {
        "member_epoch": 0,
        "previous_member_epoch": 0,
        "state": 0,
        "assigned_partitions": partitions,
        "partitions_pending_revocation": [],
    }
    assert records[6][2] == {**records[5][2], "member_epoch": 2}
    assert groups.consumer().members.keys() == {"b"}
    assert groups.reloaded().durable() == groups.durable()


def test_a_return_does_not_raise_the_epochs():
    groups = away()
    epoch = groups.consumer().epoch
    groups.enter("b", "t", instance="i")
    assert (groups.consumer().epoch, groups.consumer().assignment_epoch) == (epoch, epoch)
    assert groups.consumer().state == "Stable"


def test_a_member_that_returns_with_another_subscription_gets_other_partitions():
    groups = away()
    groups.advance(1_000)
    answer = groups.enter("b", "u", instance="i")
    assert answer["member_epoch"] == 3
    assert answer["assignment"] == {"topic_partitions": [{"topic_id": U, "partitions": [0, 1]}]}
    assert groups.consumer().state == "Stable"


def test_a_member_may_return_under_its_former_id():
    groups = away()
    assert groups.enter("a", "t", instance="i")["member_epoch"] == 2
    assert groups.consumer_member("a").assigned == {T: {0: 0, 1: 0, 2: 0}}
    assert groups.reloaded().durable() == groups.durable()


def test_a_member_that_does_not_return_is_removed():
    groups = away()
    groups.advance(CONSUMER_SESSION_MS)
    assert groups.consumer().state == "Empty"
    assert groups.consumer().static_members == {}


def test_an_instance_id_in_use_is_refused():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i")
    answer = groups.enter("b", "t", instance="i")
    assert groups.code(answer) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert answer["error_message"] == (
        "Static member b with instance id i cannot join the group because the instance id is "
        "owned by a member."
    )


def test_requests_of_a_former_member_are_fenced():
    groups = away()
    groups.enter("b", "t", instance="i")
    for epoch in (2, -1, -2):
        answer = groups.beat("a", epoch, instance="i")
        assert groups.code(answer) is ErrorCode.FENCED_INSTANCE_ID
        assert answer["error_message"] == (
            "Static member a with instance id i was fenced by member b."
        )


def test_an_unknown_instance_id_is_refused():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    for epoch in (2, -1, -2):
        answer = groups.beat("a", epoch, instance="x")
        assert groups.code(answer) is ErrorCode.UNKNOWN_MEMBER_ID
        assert answer["error_message"] == "Instance id x is unknown."


def test_a_static_member_may_leave_for_good():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i")
    assert groups.beat("a", -1, instance="i") == {"member_id": "a", "member_epoch": -1}
    assert groups.consumer().members == {}


def test_a_return_whose_records_fail_changes_nothing():
    groups = away()
    before = groups.durable()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = groups.enter("b", "t", instance="i")
    assert groups.code(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.durable() == before
    groups.fails_with = None
    assert groups.enter("b", "t", instance="i")["member_epoch"] == 2


def test_a_dynamic_member_that_becomes_static_keeps_its_partitions():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    answer = groups.enter("a", "t", instance="i")
    assert answer["assignment"] == {"topic_partitions": [{"topic_id": T, "partitions": [0, 1, 2]}]}
    assert groups.consumer().static_members == {"i": "a"}


def test_a_member_that_returns_is_counted_once_for_the_preferred_assignor():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i", assignor="range")
    groups.advance(1_000)
    groups.enter("b", "t", assignor="uniform")
    groups.settle()
    epoch = groups.consumer().epoch
    groups.beat("a", -2, instance="i")
    groups.advance(1_000)
    groups.enter("c", "t", instance="i", assignor="range")
    assert groups.consumer().epoch == epoch


@pytest.mark.parametrize("member_id", ["a", "b"])
def test_the_session_of_a_member_that_returned_ends_as_any_other(member_id):
    groups = away()
    groups.enter(member_id, "t", instance="i")
    groups.advance(CONSUMER_SESSION_MS)
    assert groups.consumer().state == "Empty"
