"""Hand-written codec of Metadata (key 3), versions 0 to 13.

    request   nullable [topic: (v10) uuid topic_id, string name (v10: nullable)],
              (v4) bool allow_auto_topic_creation,
              (v8 to v10) bool include_cluster_authorized_operations,
              (v8) bool include_topic_authorized_operations
    response  (v3) int32 throttle_time_ms,
              [broker: int32 node_id, string host, int32 port, (v1) nullable string rack],
              (v2) nullable string cluster_id, (v1) int32 controller_id,
              [topic: int16 error_code, string name (v12: nullable), (v10) uuid topic_id,
                      (v1) bool is_internal,
                      [partition: int16 error_code, int32 partition_index, int32 leader_id,
                       (v7) int32 leader_epoch, [int32] replica_nodes, [int32] isr_nodes,
                       (v5) [int32] offline_replicas],
                      (v8) int32 topic_authorized_operations],
              (v8 to v10) int32 cluster_authorized_operations, (v13) int16 error_code

Version 9 is the first flexible one. All topics are requested with an empty list in version 0, and
with null later.

Source: KIP-4, KIP-430, KIP-516; classes MetadataRequest and MetadataResponse.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import (
    ZERO_UUID,
    compact_nullable_string,
    compact_string,
    nullable_string,
    read_array_count,
    read_compact_nullable_string,
    read_string,
    skip_counted_tagged_fields,
    skip_tagged_fields,
    string,
    uvarint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_FLEXIBLE: Final = 9
FIRST_TOPIC_ID: Final = 10
FIRST_NULLABLE_NAME: Final = 12

# The client did not request authorized operations.
NO_AUTHORIZED_OPERATIONS: Final = -(1 << 31)

# A frame of 100 MB could name fifty million.
MAX_TOPICS: Final = 100_000

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_PARTITION_V0: Final = Struct(">hii")
_PARTITION_V7: Final = Struct(">hiii")
# One replica, in sync and online.
_SINGLE_V7: Final = Struct(">hiiiiiiii")
_SINGLE_V9: Final = Struct(">hiiiBiBiBx")


class MetadataRequest(NamedTuple):
    """A parsed request."""

    # (topic id, name) of each; None: all topics.
    topics: list[tuple[bytes, str | None]] | None
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class PartitionView(NamedTuple):
    """A partition in a response."""

    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    offline_replicas: Sequence[int] = ()
    error_code: int = 0


class TopicView(NamedTuple):
    """A topic in a response."""

    # None only for an unknown id, which versions below 12 cannot request.
    name: str | None
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: Sequence[PartitionView] = ()
    error_code: int = 0
    topic_authorized_operations: int = NO_AUTHORIZED_OPERATIONS


def parse_metadata(frame: memoryview, position: int, version: int) -> MetadataRequest:
    """Parse a request's body.

    Raises:
        MalformedFrameError.
    """
    flexible = version >= FIRST_FLEXIBLE
    try:
        topics, position = _parse_topics(frame, position, version)
        if version == 0 and not topics:
            topics = None
        flags = [True, False, False]
        if version >= 4:
            flags[0] = frame[position] != 0
            position += 1
        if 8 <= version <= 10:
            flags[1] = frame[position] != 0
            position += 1
        if version >= 8:
            flags[2] = frame[position] != 0
            position += 1
    except (IndexError, struct_error):
        raise MalformedFrameError("the Metadata request ends beyond its frame") from None
    if flexible:
        skip_tagged_fields(frame, position)
    # Ignore bytes after the request, as Kafka does: librdkafka 2.16 sends three.
    return MetadataRequest(topics, *flags)


def _parse_topics(
    frame: memoryview, position: int, version: int
) -> tuple[list[tuple[bytes, str | None]] | None, int]:
    flexible = version >= FIRST_FLEXIBLE
    by_id = version >= FIRST_TOPIC_ID
    count, position = read_array_count(
        frame, position, compact=flexible, element_bytes=18 if by_id else 2
    )
    if count < 0:
        if version == 0:
            raise MalformedFrameError("a required array is null")
        return None, position
    if count > MAX_TOPICS:
        raise MalformedFrameError(f"a Metadata request for {count} topics, over {MAX_TOPICS}")
    topics: list[tuple[bytes, str | None]] = []
    tag_budget = MAX_TOPICS
    for _ in range(count):
        topic_id = ZERO_UUID
        name: str | None
        if by_id:
            topic_id = bytes(frame[position : position + 16])
            position += 16
        if flexible:
            name, position = read_compact_nullable_string(frame, position)
            if name is None and not by_id:
                raise MalformedFrameError("a required string is null")
            position, tag_budget = skip_counted_tagged_fields(frame, position, tag_budget)
        else:
            name, position = read_string(frame, position)
        topics.append((topic_id, name))
    return topics, position


def encode_topic(version: int, topic: TopicView) -> bytes:
    """Encode a topic of a response, which callers may cache."""
    flexible = version >= FIRST_FLEXIBLE
    pieces = [_INT16.pack(topic.error_code)]
    if version >= FIRST_NULLABLE_NAME:
        pieces.append(compact_nullable_string(topic.name))
    else:
        assert topic.name is not None, "versions below 12 have no null name"
        pieces.append(compact_string(topic.name) if flexible else string(topic.name))
    if version >= FIRST_TOPIC_ID:
        pieces.append(topic.topic_id)
    if version >= 1:
        pieces.append(b"\x01" if topic.is_internal else b"\x00")
    if flexible:
        pieces.append(uvarint(len(topic.partitions) + 1))
        pieces += [_encode_flexible_partition(partition) for partition in topic.partitions]
    else:
        pieces.append(_INT32.pack(len(topic.partitions)))
        pieces += [_encode_classic_partition(version, partition) for partition in topic.partitions]
    if version >= 8:
        pieces.append(_INT32.pack(topic.topic_authorized_operations))
    if flexible:
        pieces.append(b"\x00")
    return b"".join(pieces)


def _encode_flexible_partition(partition: PartitionView) -> bytes:
    index, leader_id, leader_epoch, replicas, isr, offline, error_code = partition
    if len(replicas) == len(isr) == 1 and not offline:
        return _SINGLE_V9.pack(
            error_code, index, leader_id, leader_epoch, 2, replicas[0], 2, isr[0], 1
        )
    pieces = [_PARTITION_V7.pack(error_code, index, leader_id, leader_epoch)]
    for nodes in (replicas, isr, offline):
        pieces.append(uvarint(len(nodes) + 1))
        pieces += [_INT32.pack(node) for node in nodes]
    pieces.append(b"\x00")
    return b"".join(pieces)


def _encode_classic_partition(version: int, partition: PartitionView) -> bytes:
    index, leader_id, leader_epoch, replicas, isr, offline, error_code = partition
    if version >= 7:
        if len(replicas) == len(isr) == 1 and not offline:
            return _SINGLE_V7.pack(
                error_code, index, leader_id, leader_epoch, 1, replicas[0], 1, isr[0], 0
            )
        pieces = [_PARTITION_V7.pack(error_code, index, leader_id, leader_epoch)]
    else:
        pieces = [_PARTITION_V0.pack(error_code, index, leader_id)]
    for nodes in (replicas, isr, offline) if version >= 5 else (replicas, isr):
        pieces.append(_INT32.pack(len(nodes)))
        pieces += [_INT32.pack(node) for node in nodes]
    return b"".join(pieces)


def encode_metadata(
    version: int,
    *,
    brokers: Sequence[tuple[int, str, int, str | None]],
    cluster_id: str | None,
    controller_id: int,
    topics: Sequence[bytes],
    throttle_time_ms: int = 0,
    cluster_authorized_operations: int = NO_AUTHORIZED_OPERATIONS,
    error_code: int = 0,
) -> list[bytes]:
    """Encode a response's body.

    `topics` are results of `encode_topic`. `controller_id` is a live broker that accepts requests
    for the controller.
    """
    flexible = version >= FIRST_FLEXIBLE
    pieces: list[bytes] = []
    if version >= 3:
        pieces.append(_INT32.pack(throttle_time_ms))
    pieces.append(uvarint(len(brokers) + 1) if flexible else _INT32.pack(len(brokers)))
    for node_id, host, port, rack in brokers:
        if flexible:
            pieces += (_INT32.pack(node_id), compact_string(host), _INT32.pack(port))
            pieces += (compact_nullable_string(rack), b"\x00")
        else:
            pieces += (_INT32.pack(node_id), string(host), _INT32.pack(port))
            if version >= 1:
                pieces.append(nullable_string(rack))
    if version >= 2:
        pieces.append(
            compact_nullable_string(cluster_id) if flexible else nullable_string(cluster_id)
        )
    if version >= 1:
        pieces.append(_INT32.pack(controller_id))
    pieces.append(uvarint(len(topics) + 1) if flexible else _INT32.pack(len(topics)))
    pieces += topics
    if 8 <= version <= 10:
        pieces.append(_INT32.pack(cluster_authorized_operations))
    if version >= 13:
        pieces.append(_INT16.pack(error_code))
    if flexible:
        pieces.append(b"\x00")
    return [b"".join(pieces)]
