"""Selection of the offsets that can be committed, and commits of thousands in parts."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import collected
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


def sort_topics(
    image: ClusterImage, topics: Iterable[Any], *, by_id: bool
) -> Steps[tuple[Valid, Topics]]:
    """Return what can be committed, and the response for partitions that do not exist.

    A topic with many partitions is in several parts.
    """
    valid: Valid = []
    refused: Topics = []
    for topic in topics:
        partitions = topic.partitions
        for start in range(0, max(1, len(partitions)), _AT_ONCE):
            part = partitions[start : start + _AT_ONCE]
            sort_topic(image, topic, part, valid, refused, by_id)
            yield
    return valid, refused


def sort_topic(  # noqa: PLR0917 - for every topic of every commit
    image: ClusterImage,
    requested: Any,
    partitions: Sequence[Any],
    valid: Valid,
    refused: Topics,
    by_id: bool,
) -> None:
    """Add a topic's existing partitions to `valid`, and the others with an error to `refused`."""
    if by_id:
        topic = image.topics_by_id.get(requested.topic_id)
    else:
        topic = image.topics.get(requested.name)
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        refused.append(_failed_topic(requested.name, requested.topic_id, partitions, error))
        return
    existing = topic.partitions
    present: list[Any] = []
    missing: list[Any] = []
    for partition in partitions:
        (present if partition.partition_index in existing else missing).append(partition)
    if missing:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        refused.append(_failed_topic(topic.name, topic.topic_id, missing, unknown))
    if present:
        valid.append((topic.name, topic.topic_id, present))


def _failed_topic(
    name: str, topic_id: bytes, partitions: Sequence[Any], error: ErrorCode
) -> dict[str, Any]:
    failed = [
        {"partition_index": partition.partition_index, "error_code": error}
        for partition in partitions
    ]
    return {"name": name, "topic_id": topic_id, "partitions": failed}


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
