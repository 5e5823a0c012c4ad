"""What consumers tell each other through their group: who reads which partitions.

    assignment := int16 version, [](string topic, []int32 partition), bytes user data

Source: Kafka's ConsumerProtocolAssignment; later versions only add to the end.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final

from wirebroker.client.leaders import TopicPartition

_VERSION_AND_COUNT: Final = Struct(">hi")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


def assignment_of(data: bytes) -> list[TopicPartition]:
    """Return a member's partitions; none if it isn't a consumer's assignment."""
    try:
        return _read(data)
    except (struct_error, UnicodeDecodeError, ValueError):
        return []


def _read(data: bytes) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    _, count = _VERSION_AND_COUNT.unpack_from(data)
    position = _VERSION_AND_COUNT.size
    for _ in range(count):
        (length,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        if length < 0:
            raise ValueError("a topic without a name")
        topic = data[position : position + length].decode()
        position += length
        (number,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        for _ in range(number):
            (partition,) = _INT32.unpack_from(data, position)
            position += _INT32.size
            found.append(TopicPartition(topic, partition))
    return found
