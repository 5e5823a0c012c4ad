"""Hand-written parser of the Produce request (key 0), versions 3 to 13.

    request   nullable string transactional_id, int16 acks, int32 timeout_ms,
              [topic: string name or (v13) uuid topic_id,
                      [partition: int32 index, nullable bytes records]]

Version 9 is the first flexible one. The functions are long and flat, because a call per field would
double their time.

Source: KIP-98, KIP-516; class ProduceRequest.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Final, TypeAlias

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import (
    ZERO_UUID,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    read_uvarint,
    skip_counted_tagged_fields,
    skip_tagged_fields,
)

FIRST_FLEXIBLE: Final = 9
FIRST_TOPIC_ID: Final = 13
# Limit on topics and partitions: parsing this many takes 20 ms. Clients name less than a tenth.
MAX_PARTITIONS: Final = 20_000

_ACKS_AND_TIMEOUT: Final = Struct(">hi")
_ACKS_TIMEOUT_COUNT: Final = Struct(">hii")
_INT32: Final = Struct(">i")
_INDEX_AND_LENGTH: Final = Struct(">ii")


# Index and records, a view into the frame; None if the client sent null. A tuple, because there are
# so many.
ProducePartition: TypeAlias = tuple[int, memoryview | None]


class ProduceTopic:
    """A topic; from version 13 with its id and an empty name."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: list[ProducePartition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class ProduceRequest:
    """A parsed request."""

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")

    def __init__(
        self, transactional_id: str | None, acks: int, timeout_ms: int, topics: list[ProduceTopic]
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics


def parse_produce(frame: memoryview, position: int, version: int) -> ProduceRequest:
    """Parse a request's body; the result's records are views into the frame.

    Raises:
        MalformedFrameError.
    """
    assert version >= 3, "refused before it is parsed"
    try:
        if version >= FIRST_FLEXIBLE:
            request, position = _parse_flexible(frame, position, version)
        else:
            request, position = _parse_classic(frame, position)
    except (IndexError, struct.error):
        raise MalformedFrameError("the Produce request ends beyond its frame") from None
    # Like Kafka, ignore bytes after the request.
    if position > len(frame):
        raise MalformedFrameError("the Produce request ends beyond its frame")
    return request


def _parse_flexible(  # noqa: PLR0912 - flat for speed
    frame: memoryview, position: int, version: int
) -> tuple[ProduceRequest, int]:
    end = len(frame)
    transactional_id: str | None = None
    if frame[position] == 0:
        position += 1
    else:
        transactional_id, position = read_compact_nullable_string(frame, position)
    acks, timeout_ms = _ACKS_AND_TIMEOUT.unpack_from(frame, position)
    topic_count, position = read_uvarint(frame, position + 6)
    _check_count(topic_count, 1, end - position)
    topics: list[ProduceTopic] = []
    # For partitions and tagged fields together.
    budget = MAX_PARTITIONS
    for _ in range(topic_count - 1):
        name = ""
        topic_id = ZERO_UUID
        if version >= FIRST_TOPIC_ID:
            topic_id = bytes(frame[position : position + 16])
            position += 16
        else:
            name, position = read_compact_string(frame, position)
        partition_count = frame[position]
        if partition_count < 0x80:
            position += 1
        else:
            partition_count, position = read_uvarint(frame, position)
        budget -= partition_count
        _check_count(partition_count, 6, end - position)
        if budget < 0:
            raise MalformedFrameError(f"a Produce request for over {MAX_PARTITIONS} partitions")
        partitions: list[ProducePartition] = []
        for _ in range(partition_count - 1):
            (index,) = _INT32.unpack_from(frame, position)
            length = frame[position + 4]
            if length < 0x80:
                position += 5
            else:
                length, position = read_uvarint(frame, position + 4)
            records: memoryview | None = None
            if length:
                start = position
                position += length - 1
                records = frame[start:position]
            # IndexError if the length exceeded the frame.
            if frame[position] == 0:
                position += 1
            else:
                position, budget = skip_counted_tagged_fields(frame, position, budget)
            partitions.append((index, records))
        if frame[position] == 0:
            position += 1
        else:
            position, budget = skip_counted_tagged_fields(frame, position, budget)
        topics.append(ProduceTopic(name, topic_id, partitions))
    position = skip_tagged_fields(frame, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics), position


def _check_count(count_and_one: int, element_bytes: int, remaining: int) -> None:
    if count_and_one <= 0:
        raise MalformedFrameError("a required array is null")
    if (count_and_one - 1) * element_bytes > remaining:
        raise MalformedFrameError(f"an array of {count_and_one - 1} elements ends beyond the frame")


def _parse_classic(frame: memoryview, position: int) -> tuple[ProduceRequest, int]:
    end = len(frame)
    transactional_id, position = read_nullable_string(frame, position)
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, position)
    position += 10
    _check_count(topic_count + 1, 6, end - position)
    topics: list[ProduceTopic] = []
    partitions_left = MAX_PARTITIONS
    for _ in range(topic_count):
        name, position = read_string(frame, position)
        (partition_count,) = _INT32.unpack_from(frame, position)
        position += 4
        partitions_left -= partition_count + 1
        _check_count(partition_count + 1, 8, end - position)
        if partitions_left < 0:
            raise MalformedFrameError(f"a Produce request for over {MAX_PARTITIONS} partitions")
        partitions: list[ProducePartition] = []
        for _ in range(partition_count):
            index, length = _INDEX_AND_LENGTH.unpack_from(frame, position)
            position += 8
            records: memoryview | None = None
            if length != -1:
                if length < 0 or length > end - position:
                    raise MalformedFrameError(f"records of {length} bytes end beyond the frame")
                records = frame[position : position + length]
                position += length
            partitions.append((index, records))
        topics.append(ProduceTopic(name, ZERO_UUID, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics), position
