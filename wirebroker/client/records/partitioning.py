"""The partition of a record, as in Java's producer.

Source: Kafka's BuiltInPartitioner and Utils.murmur2 (MurmurHash2 by Austin Appleby, 32 bits).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return a key's hash, 0 to 2**32 - 1."""
    value = _SEED ^ len(data)
    aligned_length = len(data) & ~3
    for position in range(0, aligned_length, 4):
        part = int.from_bytes(data[position : position + 4], "little") * _MULTIPLIER & _MASK
        part = (part ^ part >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ part
    if len(data) > aligned_length:
        value = (value ^ int.from_bytes(data[aligned_length:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def partition_for(key: bytes, count: int) -> int:
    """Return a key's partition, out of `count`."""
    return (murmur2(key) & 0x7FFFFFFF) % count


class Partitioner:
    """A choice of partitions: by key, else one for each batch."""

    __slots__ = ("_count", "_random", "_sticky")

    def __init__(self, count: int, random: Random) -> None:
        self._count = count
        self._random = random
        self._sticky = random.randrange(count)

    def partition_of(self, key: bytes | None) -> int:
        """Return a record's partition."""
        if key is None:
            return self._sticky
        return partition_for(key, self._count)

    def turn(self) -> None:
        """Begin a batch, with another partition for records without a key."""
        if self._count > 1:
            step = self._random.randrange(1, self._count)
            self._sticky = (self._sticky + step) % self._count
