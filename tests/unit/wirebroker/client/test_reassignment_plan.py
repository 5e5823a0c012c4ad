"""Reassignment plans: generated, written and read."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.client.replicas.reassignment_plan import plan_text, planned_replicas, read_plan
from wirebroker.client.topics.leaders import TopicPartition


def places(*replicas):
    return {
        TopicPartition("t", number): list(broker_ids) for number, broker_ids in enumerate(replicas)
    }


def test_replicas_on_valid_brokers_are_kept():
    current = places([1, 2], [2, 3], [3, 1])
    assert planned_replicas(current, [1, 2, 3]) == current
    assert planned_replicas(current, [1, 2, 4]) == places([1, 2], [2, 4], [4, 1])


def test_replication_factor_can_be_lowered_and_raised():
    assert planned_replicas(places([1, 2, 3]), [1, 2, 3], count=1) == places([1])
    assert planned_replicas(places([1]), [1, 2], count=2) == places([1, 2])
    with pytest.raises(ValueError, match="3 replicas on 2 brokers"):
        planned_replicas(places([1]), [1, 2], count=3)


@given(
    current=st.lists(
        st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True), min_size=1, max_size=30
    ),
    brokers=st.sets(st.integers(1, 9), min_size=3).map(sorted),
)
def test_plan_spreads_replicas_over_given_brokers_and_moves_few(current, brokers):
    planned = planned_replicas(places(*current), brokers)
    kept = Counter(dict.fromkeys(brokers, 0))
    before_counts = Counter(dict.fromkeys(brokers, 0))
    for partition, before in places(*current).items():
        after = planned[partition]
        assert len(set(after)) == len(after) == len(before)
        assert set(after) <= set(brokers)
        kept.update(set(before) & set(after))
        before_counts.update(set(before) & set(brokers))
        if before[0] in after:
            assert after[0] == before[0]
    replica_counts = Counter(dict.fromkeys(brokers, 0))
    replica_counts.update(broker_id for replicas in planned.values() for broker_id in replicas)
    fewest = min(replica_counts.values())
    assert max(replica_counts.values()) - fewest <= 1
    # A broker gives up replicas only beyond the even share.
    assert all(kept[broker] >= min(before_counts[broker], fewest) for broker in brokers)


@pytest.mark.parametrize("topics", [["a"], ["a", "b", "c"]])
@pytest.mark.parametrize("before", [[[1, 2]] * 6, [[1], [2]] * 3])
def test_a_new_broker_gets_its_share_of_each_topic(topics, before):
    current = {
        TopicPartition(topic, number): replicas
        for topic in topics
        for number, replicas in enumerate(before)
    }
    planned = planned_replicas(current, [1, 2, 3])
    share = sum(map(len, before)) // 3
    for topic in topics:
        counts = Counter(
            broker
            for place, replicas in planned.items()
            if place.topic == topic
            for broker in replicas
        )
        assert counts == {1: share, 2: share, 3: share}
    moved = sum(set(replicas) != set(planned[place]) for place, replicas in current.items())
    assert moved == share * len(topics)


def test_the_brokers_with_one_more_replica_differ_between_topics():
    current = {TopicPartition(topic, 0): [1] for topic in "abcdef"}
    planned = planned_replicas(current, [1, 2, 3])
    assert Counter(replicas[0] for replicas in planned.values()) == {1: 2, 2: 2, 3: 2}


def test_leaders_that_move_go_to_the_brokers_that_lead_the_fewest():
    planned = planned_replicas(places([9, 8], [1, 2], [1, 2], [1, 2]), [1, 2])
    assert [replicas[0] for replicas in planned.values()] == [2, 1, 1, 1]


def test_written_plan_is_read_back():
    plan = places([1, 2], [3])
    assert read_plan(plan_text(plan)) == plan
    kafka_plan = '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]}]}'
    assert read_plan(kafka_plan) == places([1])


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "3",
        '{"version":2,"partitions":[]}',
        '{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}',
        '{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}',
        '{"partitions":[{"topic":"t","partition":-1,"replicas":[1]}]}',
        '{"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}',
        '{"partitions":[{"topic":"t","partition":0,"replicas":"12"}]}',
    ],
)
def test_invalid_plan_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        read_plan(text)
