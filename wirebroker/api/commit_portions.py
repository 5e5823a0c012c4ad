"""Commits of thousands of offsets, part by part, so that others are served in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# So many offsets are stored at once: about 4 ms.
_AT_ONCE: Final = 250


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
