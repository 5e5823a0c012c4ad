"""Subscriptions and assignments that consumers exchange through the coordinator, v0.

Both: int16 version; then topics with names, or names and partitions; then user data.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_INT32 = Struct(">i")


def subscription(topic: str) -> bytes:
    return bytes(2) + _INT32.pack(1) + _name(topic) + _INT32.pack(-1)


def assignment(topic: str, partitions: Sequence[int]) -> bytes:
    indexes = b"".join(_INT32.pack(partition) for partition in partitions)
    count = _INT32.pack(len(partitions))
    return bytes(2) + _INT32.pack(1) + _name(topic) + count + indexes + _INT32.pack(-1)


def read_assignment(data: bytes) -> tuple[int, ...]:
    """Return the partitions of an assignment; an empty one has none."""
    if not data or not int.from_bytes(data[2:6]):
        return ()
    position = 6
    position += 2 + int.from_bytes(data[position : position + 2])
    (count,) = _INT32.unpack_from(data, position)
    return tuple(_INT32.unpack_from(data, position + 4 + 4 * i)[0] for i in range(count))


def _name(topic: str) -> bytes:
    name = topic.encode()
    return len(name).to_bytes(2) + name
