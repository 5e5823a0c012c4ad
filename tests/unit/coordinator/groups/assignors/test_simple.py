"""The assignor `simple`: how members share partitions."""

from collections import Counter

import pytest

from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
from wirebroker.coordinator.groups.assignors.simple import assign_shared

T, U = bytes(15) + b"\x01", bytes(15) + b"\x02"


def member(member_id, *topics, **owned):
    target = {{"t": T, "u": U}[name]: frozenset(indexes) for name, indexes in owned.items()}
    return SubscribedMember(member_id, None, frozenset(topics), target)


def assigned(*members, **counts):
    assignable = {{"t": T, "u": U}[name]: range(count) for name, count in counts.items()}
    return in_one_go(assign_shared(members, assignable))


def test_without_members_nothing_is_assigned():
    assert assigned(t=3) == {}


def test_one_member_gets_everything():
    assert assigned(member("a", T, U), t=2, u=1) == {"a": {T: {0, 1}, U: {0}}}


@pytest.mark.parametrize(("count", "partitions"), [(1, 5), (2, 5), (3, 3), (5, 3), (7, 2), (4, 1)])
@pytest.mark.parametrize("are_equal", [True, False])
def test_partitions_have_equal_numbers_of_members(count, partitions, are_equal):
    members = [member(f"m{number}", T) for number in range(count)]
    if not are_equal:
        members.append(member("other", U))
    assignment = assigned(*members, t=partitions, u=1)
    loads = [len(assignment[f"m{number}"].get(T, ())) for number in range(count)]
    sharing = Counter(
        index for partitions in assignment.values() for index in partitions.get(T, ())
    )
    wanted = -(-count // partitions)
    assert sharing == dict.fromkeys(range(partitions), wanted)
    assert max(loads) - min(loads) <= 1


def test_equal_subscriptions_balance_all_topics_together():
    assignment = assigned(member("a", T, U), member("b", T, U), t=1, u=1)
    assert sorted(len(topics) for topics in assignment.values()) == [1, 1]


def test_different_subscriptions_balance_each_topic():
    assignment = assigned(member("a", T, U), member("b", T), t=2, u=2)
    assert assignment["a"][U] == {0, 1}
    assert len(assignment["a"][T]) == len(assignment["b"][T]) == 1


def test_members_keep_their_partitions():
    assignment = assigned(member("a", T, t=[1]), member("b", T, t=[0]), t=2)
    assert assignment == {"a": {T: {1}}, "b": {T: {0}}}


def test_members_lose_their_first_partitions():
    assignment = assigned(member("a", T, t=[0, 1, 2, 3]), member("b", T), t=4)
    assert assignment == {"a": {T: {2, 3}}, "b": {T: {0, 1}}}


def test_partitions_lose_their_first_members():
    owners = [member(name, T, t=[0]) for name in ("a", "b", "c")]
    assignment = assigned(*owners, t=3)
    assert assignment["c"] == {T: {0}}
    assert {next(iter(assignment[name][T])) for name in ("a", "b")} == {1, 2}


def test_only_assignable_partitions_are_assigned():
    assignment = in_one_go(assign_shared([member("a", T, t=[0, 9])], {T: [1, 2]}))
    assert assignment == {"a": {T: {1, 2}}}
    assert assigned(member("a", T, t=[0]), u=1) == {"a": {}}


def test_a_topic_of_which_a_member_loses_all_partitions_stays_empty():
    assignment = assigned(member("a", U, t=[0]), member("b", T), t=1, u=1)
    assert assignment == {"a": {T: frozenset(), U: {0}}, "b": {T: {0}}}


def test_topics_without_subscribers_are_dropped():
    assert assigned(member("a", T, u=[0]), t=1, u=1) == {"a": {T: {0}}}


def test_a_second_assignment_moves_nothing():
    members = [member(f"m{number}", T, U) for number in range(5)]
    first = assigned(*members, t=4, u=3)
    again = [member._replace(target=first[member.member_id]) for member in members]
    assert assigned(*again, t=4, u=3) == first
