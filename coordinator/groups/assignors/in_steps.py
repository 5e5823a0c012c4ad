"""Sorting and releasing large collections in steps, and Kafka's order of topic ids."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wirebroker.base.clock import Steps

T = TypeVar("T")

# Kafka compares the halves of a topic id as signed numbers (Uuid.compareTo).
signed_halves: Final = Struct(">qq").unpack


def sorted_in_steps(items: Iterable[T], key: Callable[[T], Any]) -> Steps[list[T]]:
    """Sort like `sorted`, in steps."""
    remaining = iter(items)
    runs: list[list[T]] = []
    while run := sorted(islice(remaining, WORK_PER_STEP), key=key):
        runs.append(run)
        if len(run) == WORK_PER_STEP:
            yield
    if len(runs) <= 1:
        return runs[0] if runs else []
    merged: list[T] = []
    for item in merge(*runs, key=key):
        merged.append(item)
        if len(merged) % WORK_PER_STEP == 0:
            yield
    return merged


def ordered_in_steps(partitions: Mapping[bytes, T]) -> Steps[dict[bytes, T]]:
    """Return a mapping by topic id in the order of the ids, as records have it."""
    topic_ids = yield from sorted_in_steps(partitions, bytes)
    return {topic_id: partitions[topic_id] for topic_id in topic_ids}


def cleared_in_steps(items: dict[Any, Any] | list[Any] | set[Any]) -> Steps[None]:
    """Remove all items, since releasing 100,000 objects at once takes tens of milliseconds.

    Temporary objects are released only when the result is complete. Otherwise the cycle collector,
    which counts new objects less released ones, would examine all of the result at once.
    """
    remove = items.popitem if isinstance(items, dict) else items.pop
    count = 0
    while items:
        remove()
        count += 1
        if count % WORK_PER_STEP == 0:
            yield
