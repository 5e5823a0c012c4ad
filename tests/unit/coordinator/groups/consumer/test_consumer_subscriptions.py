"""Subscriptions by name and by regular expression."""

from random import Random

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups, T, U
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.group_records import GroupRecordKind, decode_record_value
from wirebroker.coordinator.groups.consumer import consumer_replay
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
from wirebroker.coordinator.groups.consumer.consumer_records import (
    regex_record_in_steps,
    subscription_record,
)
from wirebroker.coordinator.groups.consumer.heartbeat_request import requested_names
from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex, Subscriptions

HASHES_OF_NOTHING = 0


def with_regex(*member_ids, regex="t.*"):
    """Return a stable group of members with an expression."""
    groups = ConsumerGroups()
    for member_id in member_ids:
        groups.enter(member_id, names=None, regex=regex)
    groups.work()
    groups.settle()
    return groups


def resolved(groups):
    return {
        regex: sorted(found.topics)
        for regex, found in groups.consumer().subscriptions.resolved.items()
    }


def test_a_changed_subscription_raises_the_epoch_and_is_recorded():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    mark = len(groups.log)
    answer = groups.beat("a", 2, names=["t", "u"])
    assert answer["member_epoch"] == 3
    records = groups.since(mark)
    assert [record[0] for record in records] == [
        "MEMBER_METADATA",
        "METADATA",
        "TARGET_ASSIGNMENT_MEMBER",
        "TARGET_ASSIGNMENT_METADATA",
        "CURRENT_MEMBER_ASSIGNMENT",
    ]
    assert records[0][2]["subscribed_topic_names"] == ["t", "u"]


def test_the_same_names_in_another_order_change_nothing():
    groups = ConsumerGroups()
    groups.enter("a", "t", "u")
    mark = len(groups.log)
    groups.beat("a", 2, names=["u", "t", "t"])
    assert len(groups.log) == mark


def test_topics_that_a_member_leaves_are_given_up_before_the_next_assignment():
    groups = ConsumerGroups()
    groups.enter("a", "t", "u")
    groups.beat("a", 2, names=["t"], owned={T: [0, 1, 2], U: [0, 1]})
    # The interval has not passed.
    assert groups.consumer().assignment_epoch == 2
    member = groups.consumer_member("a")
    assert (set(member.assigned), set(member.revoking)) == ({T}, {U})
    groups.settle()
    assert groups.consumer_member("a").assigned.keys() == {T}


def test_a_group_is_subscribed_to_the_topics_of_all_members():
    groups = with_regex("a")
    groups.enter("b", "u")
    group = groups.consumer()
    assert [group.is_subscribed_to(name) for name in ("t", "u", "v")] == [True, True, False]


# -- regular expressions -------------------------------------------------------------------------


def test_a_new_expression_is_resolved_and_recorded():
    groups = ConsumerGroups()
    answer = groups.enter("a", names=None, regex="t.*")
    assert answer["assignment"] == {"topic_partitions": []}
    assert groups.consumer().metadata_hash == HASHES_OF_NOTHING
    epoch = groups.consumer().epoch
    mark = len(groups.log)
    groups.work()
    assert groups.since(mark) == [
        (
            "REGULAR_EXPRESSION",
            "t.*",
            {
                "topics": ["t"],
                "version": groups.shard.image.offset,
                "timestamp": groups.moment.wall_ms,
            },
        ),
        (
            "METADATA",
            {"epoch": epoch + 1, "metadata_hash": groups.consumer().metadata_hash},
        ),
    ]
    groups.settle()
    assert groups.consumer_member("a").assigned.keys() == {T}


def test_whole_names_match():
    groups = with_regex("a", regex="t|x")
    groups.create_topic("tx", 9)
    groups.advance(20_000)
    groups.settle()
    assert resolved(groups) == {"t|x": ["t"]}


def test_names_and_an_expression_add_up():
    groups = ConsumerGroups()
    groups.enter("a", "u", regex="t")
    groups.work()
    groups.settle()
    assert groups.consumer_member("a").assigned.keys() == {T, U}


def test_a_known_expression_needs_no_search():
    groups = with_regex("a")
    groups.advance(1_000)
    groups.enter("b", names=None, regex="t.*")
    assert groups.effects == []
    assert groups.consumer().state == "Reconciling"
    assert groups.consumer_member("b").topic_regex == "t.*"


@pytest.mark.parametrize(
    ("wait_ms", "is_created", "searches"),
    [(10_000, True, 0), (10_001, True, 1), (10_001, False, 0), (600_001, False, 1)],
)
def test_new_topics_are_searched_after_ten_seconds(wait_ms, is_created, searches):
    groups = with_regex("a")
    began_ms = groups.consumer().subscriptions.resolved["t.*"].timestamp_ms
    if is_created:
        groups.create_topic("two", 9)
    while groups.moment.wall_ms < began_ms + wait_ms:
        groups.advance(min(30_000, began_ms + wait_ms - groups.moment.wall_ms))
        groups.stay("a") if groups.moment.wall_ms < began_ms + wait_ms else None
    groups.stay("a")
    assert len(groups.effects) == searches
    groups.work()
    assert resolved(groups) == {"t.*": ["t", "two"] if searches and is_created else ["t"]}


def test_a_search_that_finds_the_same_raises_no_epoch():
    groups = with_regex("a")
    epoch = groups.consumer().epoch
    groups.create_topic("other", 9)
    groups.advance(20_000)
    groups.stay("a")
    groups.work()
    assert groups.consumer().epoch == epoch


def test_only_one_search_runs():
    groups = with_regex("a")
    groups.create_topic("two", 9)
    groups.advance(20_000)
    groups.stay("a")
    groups.stay("a")
    assert len(groups.effects) == 1


def test_a_search_is_repeated_if_its_records_fail():
    groups = ConsumerGroups()
    groups.enter("a", names=None, regex="t")
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.work()
    groups.fails_with = None
    assert resolved(groups) == {}
    groups.stay("a")
    groups.work()
    assert resolved(groups) == {"t": ["t"]}


def test_topics_of_an_expression_that_was_given_up_meanwhile_are_not_recorded():
    groups = ConsumerGroups()
    groups.enter("b", "u")
    groups.enter("a", names=None, regex="t")
    groups.work_a_step()
    groups.beat("a", -1)
    groups.work()
    assert resolved(groups) == {}


def test_a_search_for_a_group_that_is_gone_has_no_effect():
    groups = ConsumerGroups()
    groups.enter("a", names=None, regex="t")
    groups.work_a_step()
    groups.beat("a", -1)
    groups.carry_out_deletion()
    mark = len(groups.log)
    groups.work()
    assert len(groups.log) == mark


def test_the_former_expression_is_deleted_with_its_last_member():
    groups = with_regex("a", "b")
    groups.advance(20_000)
    mark = len(groups.log)
    groups.stay("a", names=[], regex="u")
    assert ("REGULAR_EXPRESSION", "t.*", None) not in groups.since(mark)
    groups.work()
    groups.advance(20_000)
    groups.stay("b", names=["t"], regex="")
    assert ("REGULAR_EXPRESSION", "t.*", None) in groups.since(mark)
    groups.settle()
    assert resolved(groups) == {"u": ["u"]}
    assert groups.consumer_member("a").assigned.keys() == {U}
    assert groups.consumer_member("b").assigned.keys() == {T}


def test_an_invalid_expression_is_refused():
    groups = ConsumerGroups()
    answer = groups.enter("a", names=None, regex="(t")
    assert groups.code(answer) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer["error_message"].startswith(
        "SubscribedTopicRegex `(t` is not a valid regular expression"
    )
    assert groups.shard.groups == {}


def requested(*names):
    return in_one_go(requested_names(names))


@pytest.mark.parametrize(
    "names", [["t"], ["u", "t", "u"], ["t", "ä" * 40], ["t", "x" * 200], ["b" * 126, "c" * 127]]
)
def test_prepared_names_make_the_same_record(names):
    member = ConsumerMember("m", topic_names=frozenset(names), rack_id="r", topic_regex="t.*")
    assert subscription_record("g", member, requested(*names)) == subscription_record("g", member)


def test_record_of_an_expression_is_decoded_as_it_was():
    names = [f"t{number}" for number in range(12_000)]
    found = ResolvedRegex(frozenset(names), 5, 6)
    record = in_one_go(regex_record_in_steps("g", "t.*", found))
    kind = GroupRecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION
    assert record.value is not None
    body = decode_record_value(kind, record.value)
    assert [*body.topics] == sorted(names)
    assert (body.version, body.timestamp) == (5, 6)
    assert consumer_replay.decoded(kind, record.value) == found


def test_topics_of_a_group_are_sorted_whatever_was_sorted_before():
    random = Random(1)
    subscriptions = Subscriptions()
    names = [f"t{number}" for number in range(9_000)]
    for _ in range(40):
        topics = set(random.sample(names, random.randrange(len(names))))
        added = sorted(random.sample([*topics], random.randrange(len(topics) + 1)))
        assert [*subscriptions.in_order(topics, added)] == sorted(topics)
    assert [*subscriptions.in_order(topics, sorted(topics))] == sorted(topics)
