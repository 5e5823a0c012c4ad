"""Repeated names in an OffsetFetch request are looked up once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wirebroker.coordinator.groups.requested_offsets import distinct, merged_groups, merged_topics


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
    return [(topic.name, topic.partition_indexes) for topic in topics]


def test_repeated_topics_merge_with_distinct_partitions() -> None:
    merged = result_of(merged_topics([topic("t", 1, 2, 1), topic("u"), topic("t", 3, 2)]))
    assert named(merged) == [("t", [1, 2, 3]), ("u", [])]


def test_topics_with_different_ids_are_not_merged() -> None:
    merged = result_of(merged_topics([topic("", 1), topic("", 2, topic_id=b"x" * 16)]))
    assert named(merged) == [("", [1]), ("", [2])]


def test_versions_without_ids_merge_topics_by_name() -> None:
    old = [SimpleNamespace(name="t", partition_indexes=[index]) for index in (4, 4, 5)]
    assert named(result_of(merged_topics(old))) == [("t", [4, 5])]


def test_repeated_groups_merge_with_all_their_topics() -> None:
    groups = [group("g", topic("t", 1)), group("h", topic("t", 9)), group("g", topic("t", 1, 2))]
    g, h = result_of(merged_groups(groups))
    assert (g.group_id, named(g.topics)) == ("g", [("t", [1, 2])])
    assert (h.group_id, named(h.topics)) == ("h", [("t", [9])])


def test_request_for_all_topics_wins_in_any_position() -> None:
    for groups in (
        [group("g", topic("t", 1)), group("g", names_all=True)],
        [group("g", names_all=True), group("g", topic("t", 1))],
    ):
        (g,) = result_of(merged_groups(groups))
        assert g.topics is None


def test_a_long_list_is_merged_in_steps() -> None:
    steps = merged_topics([topic("t", *range(50_000))])
    assert sum(1 for _ in steps) > 5


def test_names_are_distinct_in_their_order() -> None:
    assert result_of(distinct(["b", "a", "b", "", "a"])) == ["b", "a", ""]
