"""The share state of new partitions: when it is requested, and its results."""

from tests.support.coordinators.share_group_kit import RETRY_MS, ShareGroups, T, U
from wirebroker.coordinator.groups.share import share_initialization
from wirebroker.coordinator.groups.share.share_initialization import InitializeShareState


def joined(*names, **settings):
    groups = ShareGroups(**settings)
    groups.share_join("a", *names)
    return groups


def taken_effects(groups):
    effects = list(groups.effects)
    groups.effects.clear()
    return effects


def test_a_new_topic_begins_at_an_undecided_offset():
    (effect,) = taken_effects(joined("t", "u"))
    expected = {T: (frozenset({0, 1, 2}), -1), U: (frozenset({0, 1}), -1)}
    assert effect == InitializeShareState("g", 2, expected)


def test_new_partitions_of_a_known_topic_begin_at_zero():
    groups = joined("t")
    groups.share_settle()
    groups.grow_topic("t", 5)
    groups.share_stay("a")
    (effect,) = taken_effects(groups)
    assert effect.topics == {T: (frozenset({3, 4}), 0)}
    assert effect.state_epoch == groups.share().epoch


def test_the_result_is_awaited_for_the_retry_interval():
    groups = joined("t")
    assert len(taken_effects(groups)) == 1
    groups.share_stay("a")
    groups.advance(RETRY_MS - 1)
    groups.share_stay("a")
    assert taken_effects(groups) == []
    groups.advance(1)
    groups.share_stay("a")
    (effect,) = taken_effects(groups)
    assert effect.topics == {T: (frozenset({0, 1, 2}), 0)}


def test_after_a_restart_the_interval_begins_again():
    groups = joined("t")
    groups.advance(RETRY_MS)
    groups = groups.reloaded()
    groups.share_stay("a")
    assert taken_effects(groups) == []
    groups.advance(RETRY_MS)
    groups.share_stay("a")
    assert len(taken_effects(groups)) == 1


def test_the_retry_interval_is_at_least_the_timeout_of_commits():
    groups = joined("t", share_initialize_retry_interval_ms=1)
    taken_effects(groups)
    groups.share_stay("a")
    groups.advance(1)
    groups.share_stay("a")
    assert len(taken_effects(groups)) == 1


def test_a_failed_initialization_is_repeated_by_the_next_heartbeat():
    groups = joined("t")
    groups.persister_fails = True
    groups.work()
    assert groups.share_topics().initializing == {}
    groups.share_stay("a")
    (effect,) = taken_effects(groups)
    assert effect.topics == {T: (frozenset({0, 1, 2}), -1)}


def test_a_failure_concerns_only_the_requested_partitions():
    groups = joined("t", "u")
    groups.carry_out(
        share_initialization.failed(groups.shard, "g", {T: {0, 2}}, None, groups.moment)
    )
    initializing = groups.share_topics().initializing
    assert {name: topic.partitions for name, topic in initializing.items()} == {
        T: {1},
        U: {0, 1},
    }


def test_results_of_groups_that_are_gone_are_dropped():
    groups = ShareGroups()
    for result in (share_initialization.initialized, share_initialization.failed):
        outcome = result(groups.shard, "g", {T: {0}}, None, groups.moment)
        assert outcome.records == []


def test_a_failure_without_initializing_topics_writes_nothing():
    groups = joined("t")
    groups.share_settle()
    outcome = share_initialization.failed(groups.shard, "g", {T: {0}}, None, groups.moment)
    assert outcome.records == []


def test_partitions_of_a_deleted_topic_have_an_unknown_name():
    groups = joined("t")
    groups.delete_topic("t")
    groups.work()
    assert groups.share_topics().initialized[T].name == "<UNKNOWN>"


def test_a_complete_group_looks_at_no_topics():
    groups = joined("t")
    groups.share_settle()
    groups.share_stay("a")
    assert groups.share().complete_topics is groups.shard.image.topics
    groups.grow_topic("t", 4)
    groups.share_stay("a")
    assert groups.share().complete_topics is None
