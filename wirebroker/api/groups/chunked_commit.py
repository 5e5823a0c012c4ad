"""Selection of the offsets that can be committed, and commits of thousands in parts."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import collected
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

# Offsets in one part: about 4 ms.
_AT_ONCE: Final = 250


Valid = list[tuple[str, bytes, "Sequence[Any]"]]
Topics = list[dict[str, Any]]


def names_many(topics: Sequence[Any]) -> bool:
    """Return whether a request exceeds one part."""
    return len(topics) > _AT_ONCE or sum(len(topic.partitions) for topic in topics) > _AT_ONCE


def are_many(topics: Iterable[tuple[Any, ...]]) -> bool:
    """Return whether topics have more partitions than one part."""
    return sum(len(partitions) for *_, partitions in topics) > _AT_ONCE


def chunked_commits(topics: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield parts of topics: tuples that identify a topic and end with its partitions."""
    part: list[tuple[Any, ...]] = []
    room = _AT_ONCE
    for *topic, partitions in topics:
        start = 0
        while start < len(partitions):
            chunk = partitions[start : start + room]
            part.append((*topic, chunk))
            start += len(chunk)
            room -= len(chunk)
            if not room:
                yield part
                part, room = [], _AT_ONCE
    if part:
        yield part


def split_existing(
    partitions: Iterable[Any], existing: Container[int]
) -> Steps[tuple[list[Any], list[Any]]]:
    """Return the partitions that exist, and the others."""
    present: list[Any] = []
    missing: list[Any] = []
    for partition in partitions:
        (present if partition.partition_index in existing else missing).append(partition)
        yield
    return present, missing


def sort_topics(
    image: ClusterImage, topics: Iterable[Any], *, by_id: bool
) -> Steps[tuple[Valid, Topics]]:
    """Return what can be committed, and the response for partitions that do not exist."""
    valid: Valid = []
    refused: Topics = []
    for requested in topics:
        if by_id:
            topic = image.topics_by_id.get(requested.topic_id)
            error = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = image.topics.get(requested.name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            failed_topic = (requested.name, requested.topic_id, requested.partitions)
            refused += yield from with_error([failed_topic], error)
            yield
            continue
        existing, unknown = yield from split_existing(requested.partitions, topic.partitions)
        if unknown:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused += yield from with_error([(topic.name, topic.topic_id, unknown)], error)
        if existing:
            valid.append((topic.name, topic.topic_id, existing))
        yield
    return valid, refused


def with_error(
    topics: Iterable[tuple[str, bytes, Sequence[Any]]], error: ErrorCode
) -> Steps[Topics]:
    """Return the response for topics that all fail with one error."""
    responses: Topics = []
    for name, topic_id, partitions in topics:
        failed = yield from failures(partitions, error)
        responses.append({"name": name, "topic_id": topic_id, "partitions": failed})
    return responses


def failures(partitions: Iterable[Any], error: ErrorCode) -> Steps[list[dict[str, Any]]]:
    """Return the response for partitions that all fail with one error."""
    yield
    return (
        yield from collected(
            {"partition_index": partition.partition_index, "error_code": error}
            for partition in partitions
        )
    )


def merged(
    refused: Iterable[dict[str, Any]], stored: Iterable[dict[str, Any]], key: str
) -> Steps[list[dict[str, Any]]]:
    """Return the topics of a response, each once, refused partitions first."""
    topics: dict[Any, dict[str, Any]] = {}
    for topic in chain(refused, stored):
        first = topics.setdefault(topic[key], topic)
        if first is not topic:
            first["partitions"] += topic["partitions"]
        yield
    return list(topics.values())
