"""Repeated names in an OffsetFetch request are looked up once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wirebroker.coordinator.groups.wishes import merged_groups, merged_topics


def topic(name: str, *indexes: int, topic_id: bytes = bytes(16)) -> Any:
    return SimpleNamespace(name=name, topic_id=topic_id, partition_indexes=list(indexes))


def group(group_id: str, *topics: Any, names_all: bool = False) -> Any:
    return SimpleNamespace(group_id=group_id, topics=None if names_all else list(topics))


def result_of(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def named(topics: Any) -> list[tuple[str, list[int]]]:
    return [(each.name, each.partition_indexes) for each in topics]


def test_partitions_of_a_topic_come_together_each_once() -> None:
    found = result_of(merged_topics([topic("t", 1, 2, 1), topic("u"), topic("t", 3, 2)]))
    assert named(found) == [("t", [1, 2, 3]), ("u", [])]


def test_topics_of_another_id_are_others() -> None:
    found = result_of(merged_topics([topic("", 1), topic("", 2, topic_id=b"x" * 16)]))
    assert named(found) == [("", [1]), ("", [2])]


def test_before_there_were_ids_a_topic_is_its_name() -> None:
    old = [SimpleNamespace(name="t", partition_indexes=[index]) for index in (4, 4, 5)]
    assert named(result_of(merged_topics(old))) == [("t", [4, 5])]


def test_groups_come_together_with_all_their_topics() -> None:
    asked = [group("g", topic("t", 1)), group("h", topic("t", 9)), group("g", topic("t", 1, 2))]
    g, h = result_of(merged_groups(asked))
    assert (g.group_id, named(g.topics)) == ("g", [("t", [1, 2])])
    assert (h.group_id, named(h.topics)) == ("h", [("t", [9])])


def test_all_topics_of_a_group_are_all_wherever_they_stand() -> None:
    for asked in (
        [group("g", topic("t", 1)), group("g", names_all=True)],
        [group("g", names_all=True), group("g", topic("t", 1))],
    ):
        (g,) = result_of(merged_groups(asked))
        assert g.topics is None


def test_a_long_list_is_merged_in_steps() -> None:
    steps = merged_topics([topic("t", *range(50_000))])
    assert sum(1 for _ in steps) > 5
