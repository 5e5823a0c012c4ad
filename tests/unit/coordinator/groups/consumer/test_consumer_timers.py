"""The timers of members: sessions, and the time to give up partitions."""

import pytest

from tests.support.coordinators.consumer_kit import CONSUMER_SESSION_MS, ConsumerGroups, T
from tests.support.coordinators.group_kit import REBALANCE_MS
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.consumer.consumer_member import MemberState
from wirebroker.coordinator.groups.consumer.consumer_timers import ConsumerRevocation

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def giving_up():
    """Return a group whose member `a` has to give up a partition for `b`."""
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    groups.enter("b", "t")
    assert groups.stay("a")["assignment"] == {
        "topic_partitions": [{"topic_id": T, "partitions": [0, 1]}]
    }
    return groups


def keep_alive(groups, ms, *member_ids, owned):
    """Let members beat for a time; they report the same partitions all the time."""
    for _ in range(ms // 10_000):
        groups.advance(10_000)
        for member_id in member_ids:
            groups.stay(member_id, owned=owned.get(member_id))


def timers_of(groups, member_id):
    return [
        kind for kind in ("session", "revocation") if ("g", member_id, kind) in groups.shard.timers
    ]


def test_a_silent_member_is_removed():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(CONSUMER_SESSION_MS - 1)
    assert groups.consumer().members.keys() == {"a"}
    mark = len(groups.log)
    groups.advance(1)
    assert groups.since(mark) == [
        ("CURRENT_MEMBER_ASSIGNMENT", "a", None),
        ("TARGET_ASSIGNMENT_MEMBER", "a", None),
        ("MEMBER_METADATA", "a", None),
        ("METADATA", {"epoch": 3, "metadata_hash": 0}),
        ("TARGET_ASSIGNMENT_METADATA", {"assignment_epoch": 3, "assignment_timestamp": 0}),
    ]
    assert timers_of(groups, "a") == []


def test_a_heartbeat_extends_the_session():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(CONSUMER_SESSION_MS - 1)
    groups.stay("a")
    groups.advance(CONSUMER_SESSION_MS - 1)
    assert groups.consumer().members.keys() == {"a"}


def test_a_refused_heartbeat_does_not_extend_the_session():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(CONSUMER_SESSION_MS - 1)
    assert groups.code(groups.beat("a", 9)) is ErrorCode.FENCED_MEMBER_EPOCH
    groups.advance(1)
    assert groups.consumer().members == {}


def test_a_member_that_keeps_partitions_for_too_long_is_removed():
    groups = giving_up()
    owned = {"a": {T: [0, 1, 2]}}
    keep_alive(groups, REBALANCE_MS - 10_000, "a", "b", owned=owned)
    groups.advance(9_999)
    assert groups.consumer().members.keys() == {"a", "b"}
    groups.advance(1)
    assert groups.consumer().members.keys() == {"b"}
    groups.settle("b")
    assert groups.consumer_member("b").assigned.keys() == {T}
    assert len(groups.consumer_member("b").assigned[T]) == 3


def test_a_member_that_gives_up_partitions_in_time_stays():
    groups = giving_up()
    assert timers_of(groups, "a") == ["session", "revocation"]
    groups.stay("a", owned={T: [0, 1]})
    assert timers_of(groups, "a") == ["session"]
    groups.settle()
    keep_alive(groups, 2 * REBALANCE_MS, "a", "b", owned={})
    assert groups.consumer().members.keys() == {"a", "b"}


def test_the_time_to_give_up_partitions_of_a_past_epoch_does_not_count():
    groups = giving_up()
    groups.carry_out(
        groups.shard.on_timer(ConsumerRevocation("g", "a", epoch=1), groups.moment),
    )
    assert groups.consumer().members.keys() == {"a", "b"}


def test_timers_start_again_after_a_load():
    groups = giving_up().reloaded()
    assert timers_of(groups, "a") == ["session", "revocation"]
    assert timers_of(groups, "b") == ["session"]
    groups.advance(CONSUMER_SESSION_MS - 1)
    assert groups.consumer().members.keys() == {"a", "b"}
    groups.advance(1)
    assert groups.consumer().members == {}


@pytest.mark.parametrize("is_first_of_two", [True, False])
def test_a_removal_that_fails_is_made_later(is_first_of_two):
    groups = ConsumerGroups()
    groups.enter("a", "t")
    if is_first_of_two:
        groups.enter("b", "t")
    groups.fails_with = NOT_AVAILABLE
    groups.advance(CONSUMER_SESSION_MS)
    assert "a" in groups.consumer().members
    groups.fails_with = None
    groups.advance(CONSUMER_SESSION_MS)
    assert groups.consumer().members == {}


def test_a_failed_record_leaves_the_timers_of_the_state_before():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.fails_with = NOT_AVAILABLE
    groups.stay("a")
    assert timers_of(groups, "a") == ["session"]
    groups.enter("c", "t")
    assert timers_of(groups, "c") == []
    groups.fails_with = None
    groups.stay("a")
    groups.fails_with = NOT_AVAILABLE
    groups.stay("a", owned={T: [0, 1]})
    assert timers_of(groups, "a") == ["session", "revocation"]


def test_a_member_that_leaves_has_no_timers():
    groups = giving_up()
    groups.beat("a", -1)
    assert timers_of(groups, "a") == []


def test_a_static_member_that_is_away_has_nothing_to_give_up_after_a_load():
    groups = ConsumerGroups()
    groups.enter("a", "t", instance="i")
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.stay("a")
    groups.beat("a", -2, instance="i")
    assert groups.consumer_member("a").state is MemberState.UNREVOKED_PARTITIONS
    assert timers_of(groups.reloaded(), "a") == ["session"]
