"""Hand-written parser of the Fetch request (key 1), versions 4 to 18.

    request   (to v14) int32 replica_id, int32 max_wait_ms, int32 min_bytes, int32 max_bytes,
              int8 isolation_level, (v7) int32 session_id, (v7) int32 session_epoch,
              [topic: string name or (v13) uuid topic_id,
                      [partition: int32 index, (v9) int32 current_leader_epoch,
                       int64 fetch_offset, (v12) int32 last_fetched_epoch,
                       (v5) int64 log_start_offset, int32 max_bytes,
                       (v17) tag 0: uuid replica_directory_id, (v18) tag 1: int64 high_watermark]],
              (v7) [forgotten topic: name or topic_id, [int32 index]], (v11) string rack_id,
              (v12) tag 0: nullable string cluster_id,
              (v15) tag 1: int32 replica_id, int64 replica_epoch

Version 12 is the first flexible one. The functions are long and flat for speed, as in produce.py.

Source: KIP-227, KIP-320, KIP-392, KIP-516, KIP-595, KIP-853, KIP-903, KIP-1166; class FetchRequest.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Final, NamedTuple

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import (
    ZERO_UUID,
    read_array_count,
    read_compact_nullable_string,
    read_compact_string,
    read_string,
    read_tagged_fields,
    skip_counted_tagged_fields,
    skip_tagged_fields,
)

FIRST_FLEXIBLE: Final = 12
FIRST_TOPIC_ID: Final = 13
FIRST_REPLICA_STATE: Final = 15
# Limit on topics, partitions (forgotten ones included) and tagged fields together.
MAX_PARTITIONS: Final = 100_000

CONSUMER_REPLICA_ID: Final = -1
NO_SESSION_EPOCH: Final = -1
# The value from replicas without KIP-1166.
NO_HIGH_WATERMARK: Final = (1 << 63) - 1

_HEAD_V4: Final = Struct(">iiiib")
_SESSION: Final = Struct(">ii")
_INT32: Final = Struct(">i")
_HEAD_V15: Final = Struct(">iiibii")
_PARTITION_V4: Final = Struct(">iqi")
_PARTITION_V5: Final = Struct(">iqqi")
_PARTITION_V9: Final = Struct(">iiqqi")
_PARTITION_V12: Final = Struct(">iiqiqi")
_REPLICA_STATE: Final = Struct(">iq")
_INT64: Final = Struct(">q")


class FetchPartition(NamedTuple):
    """A requested partition."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which no code calls here
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    # Set by followers only.
    log_start_offset: int
    max_bytes: int
    replica_directory_id: bytes = ZERO_UUID
    high_watermark: int = NO_HIGH_WATERMARK


class FetchTopic(NamedTuple):
    """A topic; from version 13 with its id and an empty name."""

    name: str
    topic_id: bytes
    partitions: list[FetchPartition]


class FetchRequest(NamedTuple):
    """A parsed request; fields that its version lacks have their defaults."""

    # CONSUMER_REPLICA_ID, or the node id of a follower.
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    # (name, topic id, indexes)
    forgotten_topics: list[tuple[str, bytes, list[int]]]
    rack_id: str = ""
    cluster_id: str | None = None
    replica_epoch: int = -1


def parse_fetch(frame: memoryview, position: int, version: int) -> FetchRequest:
    """Parse a request's body; the result does not refer to the frame.

    Raises:
        MalformedFrameError.
    """
    try:
        if version >= FIRST_FLEXIBLE:
            request, position = _parse_flexible(frame, position, version)
        else:
            request, position = _parse_classic(frame, position, version)
    except (IndexError, struct.error):
        raise MalformedFrameError("the Fetch request ends beyond its frame") from None
    # Like Kafka, ignore bytes after the request.
    if position > len(frame):
        raise MalformedFrameError("the Fetch request ends beyond its frame")
    return request


def _parse_flexible(frame: memoryview, position: int, version: int) -> tuple[FetchRequest, int]:
    replica_id = CONSUMER_REPLICA_ID
    if version < FIRST_REPLICA_STATE:
        (replica_id,) = _INT32.unpack_from(frame, position)
        position += 4
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = (
        _HEAD_V15.unpack_from(frame, position)
    )
    topics: list[FetchTopic] = []
    topic_count, position = _read_count(frame, position + _HEAD_V15.size, 3)
    budget = _take(MAX_PARTITIONS, topic_count)
    for _ in range(topic_count):
        name, topic_id, position = _read_topic(frame, position, version)
        partition_count, position = _read_count(frame, position, 33)
        budget = _take(budget, partition_count)
        partitions: list[FetchPartition] = []
        for _ in range(partition_count):
            partition = FetchPartition(*_PARTITION_V12.unpack_from(frame, position))
            if frame[position + 32] == 0:
                position += 33
            else:
                fields, position = read_tagged_fields(frame, position + 32)
                budget = _take(budget, len(fields))
                partition = _with_tags(partition, frame, fields, version)
            partitions.append(partition)
        position, budget = skip_counted_tagged_fields(frame, position, budget)
        topics.append(FetchTopic(name, topic_id, partitions))
    forgotten: list[tuple[str, bytes, list[int]]] = []
    rack_id = ""
    if frame[position] == frame[position + 1] == 1:
        # No forgotten topics, no rack: nearly every request.
        position += 2
    else:
        forgotten, position = _read_forgotten(frame, position, version, budget)
        rack_id, position = read_compact_string(frame, position)
    request = FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
    )
    if frame[position] == 0:
        return request, position + 1
    return _read_request_tags(frame, position, version, request)


def _read_forgotten(
    frame: memoryview, position: int, version: int, budget: int
) -> tuple[list[tuple[str, bytes, list[int]]], int]:
    forgotten: list[tuple[str, bytes, list[int]]] = []
    topic_count, position = _read_count(frame, position, 3)
    budget = _take(budget, topic_count)
    for _ in range(topic_count):
        name, topic_id, position = _read_topic(frame, position, version)
        index_count, position = _read_count(frame, position, 4)
        budget = _take(budget, index_count)
        indexes = struct.unpack_from(f">{index_count}i", frame, position)
        position, budget = skip_counted_tagged_fields(frame, position + 4 * index_count, budget)
        forgotten.append((name, topic_id, list(indexes)))
    return forgotten, position


def _read_count(frame: memoryview, position: int, element_bytes: int) -> tuple[int, int]:
    count = frame[position] - 1
    if 0 <= count < 0x7F and count * element_bytes < len(frame) - position:
        return count, position + 1
    count, position = read_array_count(frame, position, compact=True, element_bytes=element_bytes)
    if count < 0:
        raise MalformedFrameError("a required array is null")
    return count, position


def _take(budget: int, count: int) -> int:
    if count > budget:
        raise MalformedFrameError(
            f"a Fetch request for over {MAX_PARTITIONS} topics, partitions or tags"
        )
    return budget - count


def _read_topic(frame: memoryview, position: int, version: int) -> tuple[str, bytes, int]:
    if version >= FIRST_TOPIC_ID:
        return "", bytes(frame[position : position + 16]), position + 16
    name, position = read_compact_string(frame, position)
    return name, ZERO_UUID, position


def _with_tags(
    partition: FetchPartition, frame: memoryview, fields: list[tuple[int, int, int]], version: int
) -> FetchPartition:
    directory_id, high_watermark = partition.replica_directory_id, partition.high_watermark
    for tag, start, end in fields:
        if tag == 0 and version >= 17:
            _check_tag_length(tag, end - start, 16)
            directory_id = bytes(frame[start:end])
        elif tag == 1 and version >= 18:
            _check_tag_length(tag, end - start, 8)
            (high_watermark,) = _INT64.unpack_from(frame, start)
    return FetchPartition(*partition[:6], directory_id, high_watermark)


def _check_tag_length(tag: int, length: int, expected: int) -> None:
    if length != expected:
        raise MalformedFrameError(f"tagged field {tag} has {length} bytes, not {expected}")


def _read_request_tags(
    frame: memoryview, position: int, version: int, request: FetchRequest
) -> tuple[FetchRequest, int]:
    fields, position = read_tagged_fields(frame, position)
    for tag, start, end in fields:
        if tag == 0:
            cluster_id, after = read_compact_nullable_string(frame[:end], start)
            request = request._replace(cluster_id=cluster_id)
        elif tag == 1 and version >= FIRST_REPLICA_STATE:
            replica_id, replica_epoch = _REPLICA_STATE.unpack_from(frame[:end], start)
            after = skip_tagged_fields(frame[:end], start + _REPLICA_STATE.size)
            request = request._replace(replica_id=replica_id, replica_epoch=replica_epoch)
        else:
            continue
        _check_tag_length(tag, end - start, after - start)
    return request, position


def _parse_classic(frame: memoryview, position: int, version: int) -> tuple[FetchRequest, int]:
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = _HEAD_V4.unpack_from(
        frame, position
    )
    position += _HEAD_V4.size
    session_id, session_epoch = 0, NO_SESSION_EPOCH
    if version >= 7:
        session_id, session_epoch = _SESSION.unpack_from(frame, position)
        position += _SESSION.size
    layout = _PARTITION_V9 if version >= 9 else _PARTITION_V5 if version >= 5 else _PARTITION_V4
    topics: list[FetchTopic] = []
    topic_count, position = _read_classic_count(frame, position, 6)
    partitions_left = _take(MAX_PARTITIONS, topic_count)
    for _ in range(topic_count):
        name, position = read_string(frame, position)
        partition_count, position = _read_classic_count(frame, position, layout.size)
        partitions_left = _take(partitions_left, partition_count)
        partitions: list[FetchPartition] = []
        for _ in range(partition_count):
            fields = layout.unpack_from(frame, position)
            position += layout.size
            leader_epoch = fields[1] if version >= 9 else -1
            log_start_offset = fields[-2] if version >= 5 else -1
            fetch_offset = fields[2] if version >= 9 else fields[1]
            partitions.append(
                FetchPartition(
                    fields[0], leader_epoch, fetch_offset, -1, log_start_offset, fields[-1]
                )
            )
        topics.append(FetchTopic(name, ZERO_UUID, partitions))
    forgotten: list[tuple[str, bytes, list[int]]] = []
    if version >= 7:
        topic_count, position = _read_classic_count(frame, position, 6)
        partitions_left = _take(partitions_left, topic_count)
        for _ in range(topic_count):
            name, position = read_string(frame, position)
            index_count, position = _read_classic_count(frame, position, 4)
            partitions_left = _take(partitions_left, index_count)
            indexes = struct.unpack_from(f">{index_count}i", frame, position)
            position += 4 * index_count
            forgotten.append((name, ZERO_UUID, list(indexes)))
    rack_id = ""
    if version >= 11:
        rack_id, position = read_string(frame, position)
    request = FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
    )
    return request, position


def _read_classic_count(frame: memoryview, position: int, element_bytes: int) -> tuple[int, int]:
    count, position = read_array_count(frame, position, compact=False, element_bytes=element_bytes)
    if count < 0:
        raise MalformedFrameError("a required array is null")
    return count, position
