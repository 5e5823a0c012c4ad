"""Leaving members: the records written and the partitions freed for other members."""

from tests.support.coordinators.consumer_kit import ConsumerGroups, T
from wirebroker.codecs.errors import ErrorCode

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_the_last_member_leaves_an_assigned_group():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    mark = len(groups.log)
    assert groups.beat("a", -1) == {"member_id": "a", "member_epoch": -1}
    assert groups.since(mark) == [
        ("CURRENT_MEMBER_ASSIGNMENT", "a", None),
        ("TARGET_ASSIGNMENT_MEMBER", "a", None),
        ("MEMBER_METADATA", "a", None),
        ("METADATA", {"epoch": 3, "metadata_hash": 0}),
        ("TARGET_ASSIGNMENT_METADATA", {"assignment_epoch": 3, "assignment_timestamp": 0}),
    ]
    assert groups.consumer().state == "Empty"
    # The next member does not wait for the interval.
    assert groups.enter("b", "t")["member_epoch"] == 4


def test_the_others_get_the_partitions_of_a_member_that_leaves():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.settle()
    metadata_hash = groups.consumer().metadata_hash
    mark = len(groups.log)
    groups.beat("a", -1)
    assert groups.since(mark)[3:] == [("METADATA", {"epoch": 4, "metadata_hash": metadata_hash})]
    assert groups.consumer().state == "Assigning"
    groups.advance(1_000)
    answer = groups.stay("b")
    assert answer["assignment"] == {"topic_partitions": [{"topic_id": T, "partitions": [0, 1, 2]}]}
    assert groups.consumer().state == "Stable"


def test_a_topic_that_only_the_leaving_member_read_leaves_the_hash():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    metadata_hash = groups.consumer().metadata_hash
    groups.enter("b", "u")
    groups.beat("b", -1)
    assert groups.consumer().metadata_hash == metadata_hash


def test_the_last_member_with_an_expression_takes_its_topics_along():
    groups = ConsumerGroups()
    for member_id in "ab":
        groups.enter(member_id, regex="t", names=None)
    groups.work()
    mark = len(groups.log)
    groups.beat("a", -1)
    assert "REGULAR_EXPRESSION" not in [record[0] for record in groups.since(mark)]
    mark = len(groups.log)
    groups.beat("b", -1)
    assert groups.since(mark)[3:] == [
        ("REGULAR_EXPRESSION", "t", None),
        ("METADATA", {"epoch": groups.consumer().epoch, "metadata_hash": 0}),
        (
            "TARGET_ASSIGNMENT_METADATA",
            {"assignment_epoch": groups.consumer().epoch, "assignment_timestamp": 0},
        ),
    ]
    assert groups.consumer().subscriptions.resolved == {}


def test_a_member_may_leave_in_any_epoch():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.grow_topic("t", 5)
    groups.advance(1_000)
    groups.stay("a")
    groups.beat("a", -1)
    assert groups.consumer().members == {}


def test_a_member_whose_departure_fails_is_still_one():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.fails_with = NOT_AVAILABLE
    assert groups.code(groups.beat("a", -1)) is NOT_AVAILABLE
    groups.fails_with = None
    assert groups.code(groups.stay("a")) is ErrorCode.NONE
    assert ("g", "a", "session") in groups.shard.timers
