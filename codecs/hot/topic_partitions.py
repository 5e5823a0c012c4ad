"""Values of groups' records that end with partitions by topic, for thousands of topics.

    head     version (int16); in the current assignment of a member of a share group also its epochs
    topics   each: topic id, partitions (int32), tagged fields
    tagged fields

A topic with few partitions is one call of `struct`. Other values are left to the generic codec,
which also finds malformed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from struct import Struct, pack
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.hot.topic_lists import (
    LEFT_TO_GENERIC,
    NO_TAGS,
    UnusualError,
    decode_topics,
    encode_topics,
)
from wirebroker.codecs.primitives import uvarint

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

# Partitions by topic id.
_Partitions = Mapping[bytes, frozenset[int]]

# The head of target assignments of consumer and share groups, of version 0.
TARGET_HEAD: Final = b"\0\0"
# Up to this many partitions, the length of a topic is a single byte.
_FEW: Final = 126


@cache
def _layout(count: int) -> Struct:
    """Return the layout of a topic with `count` partitions, few of them.

    Raises:
        UnusualError: There are more.
    """
    if not 0 <= count <= _FEW:
        raise UnusualError
    return Struct(f">16sB{count}iB")


def encoded_in_steps(head: bytes, partitions: _Partitions) -> Steps[bytes]:
    """Encode a value; partitions are sorted, topics if the mapping is."""
    parts = [head]
    yield from encode_topics(parts, partitions, _encode_topic)
    parts.append(NO_TAGS)
    return b"".join(parts)


def _encode_topic(topic_id: bytes, indexes: list[int], _partitions: frozenset[int]) -> bytes:
    count = len(indexes)
    if count <= _FEW:
        return _layout(count).pack(topic_id, count + 1, *indexes, 0)
    return topic_id + uvarint(count + 1) + pack(f">{count}i", *indexes) + NO_TAGS


def decode_partitions(value: bytes, head_bytes: int) -> dict[bytes, frozenset[int]] | None:
    """Decode what follows a head; None if the generic codec has to, or if it is malformed."""
    try:
        partitions, position = decode_topics(value, head_bytes, _layout, _content)
    except LEFT_TO_GENERIC:
        return None
    return partitions if value[position:] == NO_TAGS else None


def decode_target(value: bytes) -> dict[bytes, frozenset[int]] | None:
    """Decode a target assignment; None as above."""
    if not value.startswith(TARGET_HEAD):
        return None
    return decode_partitions(value, len(TARGET_HEAD))


def _content(_count: int, fields: tuple[Any, ...]) -> frozenset[int]:
    if fields[-1]:
        raise UnusualError
    return frozenset(fields[2:-1])
