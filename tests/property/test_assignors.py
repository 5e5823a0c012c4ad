"""Assignments of random groups: complete, balanced, sticky, and a function of the group alone."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.coordinators.assignor_kit import check_assignment, load, lost, with_targets
from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
from wirebroker.coordinator.groups.assignors.assignors import ASSIGNORS
from wirebroker.coordinator.groups.assignors.range import assign_ranges
from wirebroker.coordinator.groups.assignors.uniform import assign_uniformly

MOST_TOPICS = 6
MOST_MEMBERS = 9
# Also ids that are negative numbers in Java.
TOPIC_IDS = [bytes([number * 37 % 256]) * 16 for number in range(MOST_TOPICS)]


class Group(NamedTuple):
    """Members, and partition counts by topic id."""

    members: list[SubscribedMember]
    counts: dict[bytes, int]


@st.composite
def groups(draw: Any, *, are_equal: bool | None = None, is_valid: bool = True) -> Group:
    """Make a group, whose present assignment may be unbalanced.

    If it is not valid, members also own partitions twice, or partitions that do not exist.
    """
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=MOST_TOPICS))
    counts = dict(zip(TOPIC_IDS, sizes, strict=False))
    topic_sets = st.frozensets(st.sampled_from(list(counts)))
    if draw(st.booleans()) if are_equal is None else are_equal:
        topic_sets = st.just(draw(topic_sets))
    subscriptions = draw(st.lists(topic_sets, min_size=1, max_size=MOST_MEMBERS))
    owners = st.integers(-3, len(subscriptions) - 1)
    owned: list[dict[bytes, set[int]]] = [{} for _ in subscriptions]
    surplus = 0 if is_valid else 2
    for topic in counts if is_valid else TOPIC_IDS:
        for number in range(counts.get(topic, 1) + surplus):
            for owner in draw(st.sets(owners, min_size=1, max_size=1 + surplus)):
                if owner >= 0:
                    owned[owner].setdefault(topic, set()).add(number)
    instance_ids = st.sampled_from([None, None, "x", "y", "z"])
    members = [
        SubscribedMember(
            f"m{number}",
            f"{instance_id}{number}" if (instance_id := draw(instance_ids)) else None,
            subscription,
            {topic: frozenset(numbers) for topic, numbers in owned[number].items()},
        )
        for number, subscription in enumerate(subscriptions)
    ]
    return Group(members, counts)


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups(is_valid=False))
def test_each_partition_is_assigned_to_one_subscriber(name, group):
    assignment = in_one_go(ASSIGNORS[name](group.members, group.counts))
    check_assignment(group.members, group.counts, assignment)


@given(group=groups(are_equal=True))
def test_equal_subscriptions_are_balanced_with_the_fewest_moves(group):
    members, counts = group
    assignment = in_one_go(assign_uniformly(members, counts))
    loads = [load(owned) for owned in assignment.values()]
    assert max(loads) - min(loads) <= 1
    total = sum(counts[topic] for topic in members[0].topic_ids)
    minimum, larger_count = divmod(total, len(members))
    subscribed = [
        {topic: numbers for topic, numbers in member.target.items() if topic in member.topic_ids}
        for member in members
    ]
    before = sorted(map(load, subscribed), reverse=True)
    surplus = sum(
        max(0, size - minimum - (number < larger_count)) for number, size in enumerate(before)
    )
    assert sum(map(len, lost(members, assignment).values())) == surplus


@given(group=groups(are_equal=False))
def test_no_single_move_improves_the_balance_of_different_subscriptions(group):
    members, counts = group
    assignment = in_one_go(assign_uniformly(members, counts))
    for giver in members:
        for topic in assignment[giver.member_id]:
            for receiver in members:
                if topic in receiver.topic_ids:
                    higher = load(assignment[giver.member_id])
                    assert higher - load(assignment[receiver.member_id]) <= 1


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups())
def test_second_assignment_moves_nothing(name, group):
    assignment = in_one_go(ASSIGNORS[name](group.members, group.counts))
    again = with_targets(group.members, assignment)
    assert in_one_go(ASSIGNORS[name](again, group.counts)) == assignment


@given(group=groups(are_equal=True), leaver=st.integers(0, MOST_MEMBERS - 1))
def test_only_partitions_of_a_leaving_member_move(group, leaver):
    members, counts = group
    assignment = in_one_go(assign_uniformly(members, counts))
    remaining = with_targets(members, assignment)
    del remaining[leaver % len(remaining)]
    after = in_one_go(assign_uniformly(remaining, counts))
    assert not any(lost(remaining, after).values())


@given(group=groups(), leaver=st.integers(0, MOST_MEMBERS - 1))
def test_subscribers_of_other_topics_keep_their_partitions_when_a_member_leaves(group, leaver):
    """Members with which the leaving one is not connected by subscriptions."""
    members, counts = group
    assignment = in_one_go(assign_uniformly(members, counts))
    remaining = with_targets(members, assignment)
    left = remaining.pop(leaver % len(remaining))
    connected = set(left.topic_ids)
    for _ in remaining:
        for member in remaining:
            if member.topic_ids & connected:
                connected |= member.topic_ids
    after = in_one_go(assign_uniformly(remaining, counts))
    for member in remaining:
        if not member.topic_ids & connected:
            assert after[member.member_id] == assignment[member.member_id]


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups(), seed=st.integers(0, 1_000))
def test_order_of_topics_and_partitions_plays_no_role(name, group, seed):
    random = Random(seed)
    shuffled = Group(
        [
            member._replace(
                topic_ids=frozenset(in_random_order(random, member.topic_ids)),
                target=dict(in_random_order(random, member.target.items())),
            )
            for member in group.members
        ],
        dict(in_random_order(random, group.counts.items())),
    )
    assignment = in_one_go(ASSIGNORS[name](group.members, group.counts))
    assert in_one_go(ASSIGNORS[name](shuffled.members, shuffled.counts)) == assignment


@given(group=groups(), seed=st.integers(0, 1_000))
def test_order_of_members_plays_no_role_for_range(group, seed):
    members = in_random_order(Random(seed), group.members)
    expected = in_one_go(assign_ranges(group.members, group.counts))
    assert in_one_go(assign_ranges(members, group.counts)) == expected


def in_random_order(random: Random, items: Any) -> list[Any]:
    listed = list(items)
    random.shuffle(listed)
    return listed
