"""The value of ConsumerGroupCurrentMemberAssignment, for members with thousands of topics.

    version (int16), epoch, previous epoch (int32), state (int8), assigned, revoking, tagged fields
    assigned, revoking: topic id, partitions (int32), tagged field 0: their epochs (int32)

A topic with few partitions is one call of `struct`. Other values are left to the generic codec,
which also finds malformed ones. `in_steps` encodes some topics at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from struct import Struct, pack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

# The epochs in which a member got its partitions, by topic id and partition.
_Partitions = Mapping[bytes, Mapping[int, int]]

_VERSION: Final = 0
_HEAD: Final = Struct(">hiib")
# Up to this many partitions, all lengths in a topic are single bytes.
_FEW: Final = 31
_TAG: Final = 0


class MemberAssignment(NamedTuple):
    """The fields of a value."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: _Partitions
    revoking: _Partitions


@cache
def _layout(count: int) -> Struct:
    """Return the layout of a topic with `count` partitions, few of them.

    Raises:
        UnusualError: There are more, or none.
    """
    if not 0 < count <= _FEW:
        raise UnusualError
    return Struct(f">16sB{count}iBBBB{count}i")


def encoded_in_steps(assignment: MemberAssignment) -> Steps[bytes]:
    """Encode a value with its version; partitions are sorted, topics if the mappings are."""
    epoch, previous_epoch, state, assigned, revoking = assignment
    parts = [_HEAD.pack(_VERSION, epoch, previous_epoch, state)]
    work = yield from encode_topics(parts, assigned, _encode_topic)
    yield from encode_topics(parts, revoking, _encode_topic, work)
    parts.append(NO_TAGS)
    return b"".join(parts)


def _encode_topic(topic_id: bytes, indexes: list[int], epochs_of: Mapping[int, int]) -> bytes:
    count = len(indexes)
    since = [epochs_of[index] for index in indexes]
    if 0 < count <= _FEW:
        size = 1 + 4 * count
        return _layout(count).pack(topic_id, count + 1, *indexes, 1, _TAG, size, count + 1, *since)
    numbers = uvarint(count + 1) + pack(f">{count}i", *indexes)
    if not count:
        return topic_id + numbers + NO_TAGS
    epochs = uvarint(count + 1) + pack(f">{count}i", *since)
    return topic_id + numbers + b"\1" + uvarint(_TAG) + uvarint(len(epochs)) + epochs


def decode_member_assignment(value: bytes) -> MemberAssignment | None:
    """Decode a value; None if the generic codec has to, or if it is malformed."""
    try:
        version, epoch, previous_epoch, state = _HEAD.unpack_from(value)
        if version != _VERSION:
            return None
        assigned, position = decode_topics(value, _HEAD.size, _layout, _content)
        revoking, position = decode_topics(value, position, _layout, _content)
    except LEFT_TO_GENERIC:
        return None
    if value[position:] != NO_TAGS:
        return None
    return MemberAssignment(epoch, previous_epoch, state, assigned, revoking)


def _content(count: int, fields: tuple[Any, ...]) -> dict[int, int]:
    middle = count + 2
    if fields[middle : middle + 4] != (1, _TAG, 1 + 4 * count, count + 1):
        raise UnusualError
    return dict(zip(fields[2:middle], fields[middle + 4 :], strict=True))
