"""Iteration order of Java's HashMap, in which Kafka's tools print configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from wirebroker.coordinator.groups.partitions import java_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Item = TypeVar("Item")

_LEAST_BUCKETS = 16
_PRIME = 31


def in_map_order(
    items: Iterable[Item], key: Callable[[Item], str], *, copied: int = 0
) -> list[Item]:
    """Return items in the order of a HashMap, which began as a copy of one with `copied` items."""
    return in_hash_order(items, lambda item: java_hash(key(item)), copied=copied)


def in_hash_order(
    items: Iterable[Item], code: Callable[[Item], int], *, copied: int = 0
) -> list[Item]:
    """Return items in the order of a HashMap, by these hash codes."""
    listed = list(items)
    buckets = _LEAST_BUCKETS
    if copied:  # the least power of two for that many
        buckets = 1 << (copied * 4 // 3).bit_length()
    while len(listed) * 4 > buckets * 3:  # the map grows when it is three quarters full
        buckets *= 2

    def bucket(item: Item) -> int:
        hashed = code(item) & 0xFFFF_FFFF
        return (hashed ^ hashed >> 16) & (buckets - 1)

    return sorted(listed, key=bucket)


def partition_hash(topic: str, partition: int) -> int:
    """Return the hash code of Kafka's TopicPartition."""
    return (_PRIME * (_PRIME + partition) + java_hash(topic)) & 0xFFFF_FFFF
