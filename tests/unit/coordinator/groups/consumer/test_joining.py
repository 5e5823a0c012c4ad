"""Joining members: epochs, refused requests and repeated requests."""

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups, T
from wirebroker.codecs.errors import ErrorCode


def two_members():
    """Return a stable group of `a` and `b`, both in epoch 3."""
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.settle()
    return groups


def test_a_group_begins_with_the_first_member():
    groups = ConsumerGroups()
    for epoch in (1, -1):
        answer = groups.beat("a", epoch)
        assert groups.code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Group g not found."
    assert groups.beat("a", 1)["error_message"] == "Consumer group g not found."


def test_an_unknown_member_is_refused():
    groups = two_members()
    for epoch in (3, -1):
        answer = groups.beat("x", epoch)
        assert groups.code(answer) is ErrorCode.UNKNOWN_MEMBER_ID
        assert answer["error_message"] == "Member x is not a member of group g."


@pytest.mark.parametrize(
    ("epoch", "owned", "comparison"),
    [
        (4, {T: [0]}, "greater"),
        (1, {T: [0]}, "smaller"),
        # The epoch before, but without its partitions or with others.
        (2, None, "smaller"),
        (2, {T: [0, 2]}, "smaller"),
        (2, {b"x" * 16: [0]}, "smaller"),
    ],
)
def test_a_wrong_epoch_is_fenced(epoch, owned, comparison):
    groups = two_members()
    assert groups.consumer_member("a").assigned == {T: {0: 2, 1: 2}}
    answer = groups.beat("a", epoch, owned=owned)
    assert groups.code(answer) is ErrorCode.FENCED_MEMBER_EPOCH
    assert answer["error_message"] == (
        f"The consumer group member has a {comparison} member epoch ({epoch}) than the one known "
        "by the group coordinator (3). The member must abandon all its partitions and rejoin."
    )


@pytest.mark.parametrize("owned", [{}, {T: [0]}, {T: [0, 1]}])
def test_a_request_after_a_lost_response_is_accepted(owned):
    groups = two_members()
    answer = groups.beat("a", 2, names=["t"], rebalance_ms=60_000, owned=owned)
    assert answer["member_epoch"] == 3
    assert answer["assignment"] == {"topic_partitions": [{"topic_id": T, "partitions": [0, 1]}]}


def test_a_member_that_joins_again_has_given_up_everything():
    groups = two_members()
    groups.advance(1_000)
    groups.enter("c", "t")
    groups.stay("a")
    assert groups.consumer_member("a").revoking
    answer = groups.enter("a", "t")
    assert answer["member_epoch"] == groups.consumer().epoch
    assert groups.consumer_member("a").revoking == {}
    groups.settle()


def test_a_repeated_join_changes_nothing():
    groups = ConsumerGroups()
    first = groups.enter("a", "t")
    mark = len(groups.log)
    assert groups.enter("a", "t") == first
    assert len(groups.log) == mark


def test_a_full_group_accepts_no_more_members():
    groups = ConsumerGroups(consumer_max_size=2)
    groups.enter("a", "t", instance="i")
    groups.enter("b", "t")
    answer = groups.enter("c", "t")
    assert groups.code(answer) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answer["error_message"] == (
        "The consumer group has reached its maximum capacity of 2 members."
    )
    assert groups.code(groups.enter("", "t", version=0)) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.code(groups.enter("b", "t")) is ErrorCode.NONE
    groups.beat("a", -2, instance="i")
    assert groups.code(groups.enter("d", "t", instance="i")) is ErrorCode.NONE


def test_a_simple_group_becomes_a_consumer_group():
    groups = ConsumerGroups()
    groups.commit(partition=0, offset=5)
    groups.enter("a", "t")
    assert groups.since(1)[0] == ("GroupKey", None)
    assert groups.consumer().state == "Stable"
    assert groups.committed() == 5
    assert groups.reloaded().durable() == groups.durable()


def test_a_classic_group_with_members_is_refused():
    groups = ConsumerGroups()
    groups.stable()
    answer = groups.beat("a", 1)
    assert groups.code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Group g is not a consumer group."
