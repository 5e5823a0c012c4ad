"""The groups, topics and partitions of a request, without repetitions.

Each repetition of a group would cost as much as all its offsets or members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

# Partition indexes per step.
_STEP: Final = 10_000


def distinct(names: Iterable[str]) -> Generator[None, None, list[str]]:
    """Return each name once, in steps."""
    found: dict[str, None] = {}
    for name in names:
        found[name] = None
        yield
    return list(found)


def merged_groups(groups: Sequence[Any]) -> Generator[None, None, list[Any]]:
    """Return each group of an OffsetFetch once with all its topics (None: all), in steps.

    The decoded request is modified.
    """
    merged = yield from groups_of_all(groups)
    for group in merged:
        if group.topics is not None:
            group.topics = yield from merged_topics(group.topics)
        yield
    return merged


def groups_of_all(groups: Sequence[Any]) -> Generator[None, None, list[Any]]:
    """Return each group once with the topics of all its repetitions (None: all), in steps.

    The decoded request is modified; topics may still be repeated.
    """
    merged: dict[str, Any] = {}
    for group in groups:
        first = merged.setdefault(group.group_id, group)
        if first is not group and first.topics is not None:
            if group.topics is None:
                first.topics = None
            else:
                first.topics.extend(group.topics)
        yield
    return list(merged.values())


def merged_topics(topics: Sequence[Any]) -> Generator[None, None, list[Any]]:
    """Return each topic once with distinct partitions, in steps."""
    merged: dict[tuple[str, bytes], tuple[Any, dict[int, None]]] = {}
    for topic in topics:
        _, indexes = merged.setdefault(_key_of(topic), (topic, {}))
        for start in range(0, len(topic.partition_indexes), _STEP):
            indexes.update(dict.fromkeys(topic.partition_indexes[start : start + _STEP]))
            yield
        yield
    for topic, indexes in merged.values():
        topic.partition_indexes = list(indexes)
        yield
    return [topic for topic, _ in merged.values()]


def _key_of(topic: Any) -> tuple[str, bytes]:
    """Return the key of a topic: name and topic id.

    Before v8 the decoded topic has no `topic_id` field; before v10 the id is zero.
    """
    return topic.name, getattr(topic, "topic_id", b"")
