"""Commits of thousands of offsets, part by part, so that others are served in between."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from wirebroker.clock import collected

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from wirebroker.clock import Steps
    from wirebroker.codecs.errors import ErrorCode

# So many offsets are stored at once: about 4 ms.
_AT_ONCE: Final = 250


def names_many(topics: Sequence[Any]) -> bool:
    """Tell whether a request names more topics or partitions than are stored at once."""
    return len(topics) > _AT_ONCE or sum(len(each.partitions) for each in topics) > _AT_ONCE


def are_many(topics: Iterable[tuple[Any, ...]]) -> bool:
    """Tell whether topics have more partitions than are stored at once."""
    return sum(len(partitions) for *_, partitions in topics) > _AT_ONCE


def commit_portions(topics: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield topics with so many partitions together as are stored at once.

    Args:
        topics: Of each what says which it is, and last its partitions.
    """
    part: list[tuple[Any, ...]] = []
    room = _AT_ONCE
    for *topic, partitions in topics:
        start = 0
        while start < len(partitions):
            taken = partitions[start : start + room]
            part.append((*topic, taken))
            start += len(taken)
            room -= len(taken)
            if not room:
                yield part
                part, room = [], _AT_ONCE
    if part:
        yield part


def split_known(asked: Iterable[Any], known: Container[int]) -> Steps[tuple[list[Any], list[Any]]]:
    """Return the partitions of a request that exist, and the others; in steps."""
    there: list[Any] = []
    missing: list[Any] = []
    for each in asked:
        (there if each.partition_index in known else missing).append(each)
        yield
    return there, missing


def failures(partitions: Iterable[Any], error: ErrorCode) -> Steps[list[dict[str, Any]]]:
    """Return what a response says of partitions that all fail alike; in steps."""
    yield
    return (
        yield from collected(
            {"partition_index": each.partition_index, "error_code": error} for each in partitions
        )
    )


def merged(
    refused: Iterable[dict[str, Any]], stored: Iterable[dict[str, Any]], key: str
) -> Steps[list[dict[str, Any]]]:
    """Return the topics of a response, each once: the partitions that are refused come first."""
    topics: dict[Any, dict[str, Any]] = {}
    for topic in chain(refused, stored):
        known = topics.setdefault(topic[key], topic)
        if known is not topic:
            known["partitions"] += topic["partitions"]
        yield
    return list(topics.values())
