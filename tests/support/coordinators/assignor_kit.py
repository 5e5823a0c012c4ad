"""Groups for assignors, written as text, and checks of assignments.

A topic has a letter, a partition a letter and a number. `a [t u] t0 t1` is a member `a` that
subscribes to t and u and owns t0 and t1; `a/x [t]` has the instance id x.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.coordinator.groups.assignors.assignor import Assignor, GroupAssignment

_MEMBER = re.compile(r"(\w+)(?:/(\w+))? \[([^]]*)\](.*)")


def topic_id(letter: str) -> bytes:
    return letter.encode() * 16


def topics(**counts: int) -> dict[bytes, int]:
    """Return partition counts by topic id, from letters."""
    return {topic_id(letter): count for letter, count in counts.items()}


def member(text: str) -> SubscribedMember:
    match = _MEMBER.fullmatch(text)
    assert match, text
    name, instance_id, subscribed, owned = match.groups()
    subscription = frozenset(map(topic_id, subscribed.split()))
    return SubscribedMember(name, instance_id, subscription, partitions(owned))


def partitions(text: str) -> dict[bytes, frozenset[int]]:
    owned: dict[bytes, set[int]] = {}
    for partition in text.split():
        owned.setdefault(topic_id(partition[0]), set()).add(int(partition[1:]))
    return {topic: frozenset(numbers) for topic, numbers in owned.items()}


def assigned(assign: Assignor, group: Iterable[str], counts: Mapping[bytes, int]) -> dict[str, str]:
    """Return each member's new partitions as text."""
    assignment = in_one_go(assign([member(text) for text in group], counts))
    return {
        member_id: " ".join(
            f"{chr(topic[0])}{number}"
            for topic, numbers in sorted(owned.items())
            for number in sorted(numbers)
        )
        for member_id, owned in assignment.items()
    }


def with_targets(
    members: Iterable[SubscribedMember], assignment: GroupAssignment
) -> list[SubscribedMember]:
    """Return the members with an assignment as their present one."""
    return [member._replace(target=assignment.get(member.member_id, {})) for member in members]


def check_assignment(
    members: Sequence[SubscribedMember],
    counts: Mapping[bytes, int],
    assignment: GroupAssignment,
) -> None:
    """Assert that subscribers own each partition of a subscribed topic once, and nothing else."""
    assert list(assignment) == [member.member_id for member in members]
    owners: Counter[tuple[bytes, int]] = Counter()
    for each in members:
        owned = assignment[each.member_id]
        assert owned.keys() <= each.topic_ids
        assert all(owned.values())
        owners.update((topic, number) for topic in owned for number in owned[topic])
    subscribed = {topic for each in members for topic in each.topic_ids}
    expected = {(topic, number) for topic in subscribed for number in range(counts[topic])}
    assert owners == Counter(expected)


def load(owned: Mapping[bytes, frozenset[int]]) -> int:
    return sum(map(len, owned.values()))


def lost(
    members: Iterable[SubscribedMember], assignment: GroupAssignment
) -> dict[str, set[tuple[bytes, int]]]:
    """Return the partitions of subscribed topics that each member owned before and not after."""
    return {
        each.member_id: {
            (topic, number)
            for topic, numbers in each.target.items()
            if topic in each.topic_ids
            for number in numbers - assignment[each.member_id].get(topic, frozenset())
        }
        for each in members
    }
