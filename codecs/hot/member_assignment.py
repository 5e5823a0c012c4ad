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
from struct import error as struct_error
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.primitives import read_uvarint, uvarint

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

# The epochs in which a member got its partitions, by topic id and partition.
_Partitions = Mapping[bytes, Mapping[int, int]]

_VERSION: Final = 0
_HEAD: Final = Struct(">hiib")
# Up to this many partitions, all lengths in a topic are single bytes.
_FEW: Final = 31
_TOPIC_ID_BYTES: Final = 16
_TAG: Final = 0
_NO_TAGS: Final = b"\0"
# Topics between two yields: half a millisecond.
_TOPICS_PER_STEP: Final = 500


class MemberAssignment(NamedTuple):
    """The fields of a value."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: _Partitions
    revoking: _Partitions


class _UnusualError(Exception):
    """The generic codec has to read the value."""


@cache
def _layout(count: int) -> Struct:
    """Return the layout of a topic with `count` partitions, few of them."""
    return Struct(f">16sB{count}iBBBB{count}i")


def encoded_in_steps(assignment: MemberAssignment) -> Steps[bytes]:
    """Encode a value with its version; partitions are sorted, topics if the mappings are."""
    epoch, previous_epoch, state, assigned, revoking = assignment
    parts = [_HEAD.pack(_VERSION, epoch, previous_epoch, state)]
    for partitions in (assigned, revoking):
        parts.append(uvarint(len(partitions) + 1))
        for topic_id, epochs in partitions.items():
            count = len(epochs)
            indexes = sorted(epochs) if count > 1 else list(epochs)
            since = [epochs[index] for index in indexes]
            if 0 < count <= _FEW:
                size = 1 + 4 * count
                parts.append(
                    _layout(count).pack(
                        topic_id, count + 1, *indexes, 1, _TAG, size, count + 1, *since
                    )
                )
            else:
                parts.append(_encode_topic(topic_id, indexes, since))
            if len(parts) % _TOPICS_PER_STEP == 0:
                yield
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _encode_topic(topic_id: bytes, indexes: list[int], since: list[int]) -> bytes:
    count = len(indexes)
    numbers = uvarint(count + 1) + pack(f">{count}i", *indexes)
    if not count:
        return topic_id + numbers + _NO_TAGS
    epochs = uvarint(count + 1) + pack(f">{count}i", *since)
    return topic_id + numbers + b"\1" + uvarint(_TAG) + uvarint(len(epochs)) + epochs


def decode_member_assignment(value: bytes) -> MemberAssignment | None:
    """Decode a value; None if the generic codec has to, or if it is malformed."""
    try:
        version, epoch, previous_epoch, state = _HEAD.unpack_from(value)
        if version != _VERSION:
            return None
        assigned, position = _decode_topics(value, _HEAD.size)
        revoking, position = _decode_topics(value, position)
    except (struct_error, IndexError, _UnusualError, ValueError):
        return None
    if value[position:] != _NO_TAGS:
        return None
    return MemberAssignment(epoch, previous_epoch, state, assigned, revoking)


def _decode_topics(value: bytes, position: int) -> tuple[dict[bytes, dict[int, int]], int]:
    length, position = read_uvarint(value, position)
    if not length or length > len(value):
        raise _UnusualError
    partitions: dict[bytes, dict[int, int]] = {}
    for _ in range(length - 1):
        count = value[position + _TOPIC_ID_BYTES] - 1
        if not 0 < count <= _FEW:
            raise _UnusualError
        layout = _layout(count)
        fields = layout.unpack_from(value, position)
        middle = count + 2
        if fields[middle : middle + 4] != (1, _TAG, 1 + 4 * count, count + 1):
            raise _UnusualError
        partitions[fields[0]] = dict(zip(fields[2:middle], fields[middle + 4 :], strict=True))
        position += layout.size
    return partitions, position
