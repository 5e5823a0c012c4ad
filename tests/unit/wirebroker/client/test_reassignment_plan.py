"""Reassignment plans: generated, written and read."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.client.replicas.reassignment_plan import plan_text, planned_replicas, read_plan
from wirebroker.client.topics.leaders import TopicPartition


def places(*replicas):
    return {TopicPartition("t", number): list(each) for number, each in enumerate(replicas)}


def test_replicas_that_may_stay_stay():
    current = places([1, 2], [2, 3], [3, 1])
    assert planned_replicas(current, [1, 2, 3]) == current
    assert planned_replicas(current, [1, 2, 4]) == places([1, 2], [2, 4], [4, 1])


def test_fewer_and_more_replicas():
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
def test_a_plan_is_on_the_brokers_and_moves_no_more_than_it_must(current, brokers):
    planned = planned_replicas(places(*current), brokers)
    for place, before in places(*current).items():
        after = planned[place]
        assert len(set(after)) == len(after) == len(before)
        assert set(after) <= set(brokers)
        assert set(before) & set(brokers) <= set(after)
        if before[0] in brokers:
            assert after[0] == before[0]
    if not {each for replicas in current for each in replicas} & set(brokers):
        held = Counter(dict.fromkeys(brokers, 0))
        held.update(each for replicas in planned.values() for each in replicas)
        assert max(held.values()) - min(held.values()) <= 1


def test_a_plan_is_read_as_it_was_written():
    plan = places([1, 2], [3])
    assert read_plan(plan_text(plan)) == plan
    theirs = '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]}]}'
    assert read_plan(theirs) == places([1])


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
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        read_plan(text)
