"""Encoding of consumers' subscriptions and assignments.

    subscription := int16 version, []string topic, bytes user data
    assignment   := int16 version, [](string topic, []int32 partition), bytes user data

Later versions only append fields.

Source: Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from wirebroker.client.topics.leaders import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

_VERSION_AND_COUNT: Final = Struct(">hi")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_VERSION: Final = 0
_NO_USER_DATA: Final = _INT32.pack(-1)


def assignment_of(data: bytes) -> list[TopicPartition]:
    """Return an assignment's partitions; none if it is malformed."""
    try:
        return _read(data)
    except (struct_error, UnicodeDecodeError, ValueError):
        return []


def assignment_bytes(assignment: Iterable[TopicPartition]) -> bytes:
    """Return an encoded assignment."""
    topics: dict[str, list[int]] = {}
    for partition in assignment:
        topics.setdefault(partition.topic, []).append(partition.partition)
    rows = [
        _string(topic)
        + _INT32.pack(len(partitions))
        + b"".join(_INT32.pack(index) for index in partitions)
        for topic, partitions in topics.items()
    ]
    return _VERSION_AND_COUNT.pack(_VERSION, len(rows)) + b"".join(rows) + _NO_USER_DATA


def subscription_of(data: bytes) -> list[str]:
    """Return a subscription's topics; none if it is malformed."""
    try:
        _, count = _VERSION_AND_COUNT.unpack_from(data)
        position = _VERSION_AND_COUNT.size
        topics: list[str] = []
        for _ in range(count):
            topic, position = _read_string(data, position)
            topics.append(topic)
    except (struct_error, UnicodeDecodeError, ValueError):
        return []
    return topics


def subscription_bytes(topics: Iterable[str]) -> bytes:
    """Return an encoded subscription."""
    names = [_string(topic) for topic in topics]
    return _VERSION_AND_COUNT.pack(_VERSION, len(names)) + b"".join(names) + _NO_USER_DATA


def _string(text: str) -> bytes:
    data = text.encode()
    return _INT16.pack(len(data)) + data


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(data, position)
    position += _INT16.size
    if length < 0 or position + length > len(data):
        raise ValueError("a topic without a name")
    return data[position : position + length].decode(), position + length


def _read(data: bytes) -> list[TopicPartition]:
    partitions: list[TopicPartition] = []
    _, count = _VERSION_AND_COUNT.unpack_from(data)
    position = _VERSION_AND_COUNT.size
    for _ in range(count):
        topic, position = _read_string(data, position)
        (number,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        for _ in range(number):
            (partition,) = _INT32.unpack_from(data, position)
            position += _INT32.size
            partitions.append(TopicPartition(topic, partition))
    return partitions
