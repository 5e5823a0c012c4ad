import struct
from typing import NamedTuple

import pytest

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.hot.fetch import (
    MAX_PARTITIONS,
    NO_HIGH_WATERMARK,
    FetchPartition,
    parse_fetch,
)
from wirebroker.codecs.hot.fetch_response import FetchPartitionResult, encode_fetch
from wirebroker.codecs.primitives import ZERO_UUID, string, uvarint

TOPIC_ID = bytes(range(16))
DIRECTORY_ID = b"d" * 16


class Slice(NamedTuple):
    length: int


def request(
    *, version: int = 18, partition_tags: bytes = b"\x00", tags: bytes = b"\x00", tail: bytes = b""
) -> memoryview:
    head = struct.pack(">iiibii", 500, 1, 1 << 20, 1, 11, 12)
    if version < 15:
        head = struct.pack(">i", 5) + head
    topic = TOPIC_ID if version >= 13 else b"\x02t"
    partition = struct.pack(">iiqiqi", 3, 4, 5, 6, 7, 8) + partition_tags
    forgotten = b"\x02" + topic + b"\x03" + struct.pack(">ii", 1, 2) + b"\x00"
    rack = b"\x05rack"
    body = head + b"\x02" + topic + b"\x02" + partition + b"\x00" + forgotten + rack + tags + tail
    return memoryview(body)


def test_a_consumer_s_request() -> None:
    parsed = parse_fetch(request(), 0, 18)
    assert parsed[:7] == (-1, 500, 1, 1 << 20, 1, 11, 12)
    (topic,) = parsed.topics
    assert (topic.name, topic.topic_id) == ("", TOPIC_ID)
    assert topic.partitions == [FetchPartition(3, 4, 5, 6, 7, 8, ZERO_UUID, NO_HIGH_WATERMARK)]
    assert parsed.forgotten_topics == [("", TOPIC_ID, [1, 2])]
    assert (parsed.rack_id, parsed.cluster_id, parsed.replica_epoch) == ("rack", None, -1)


def test_a_follower_s_request_carries_its_state_in_tagged_fields() -> None:
    partition_tags = b"\x02\x00\x10" + DIRECTORY_ID + b"\x01\x08" + struct.pack(">q", 99)
    state = struct.pack(">iq", 2, 33) + b"\x00"
    tags = b"\x02\x00\x04\x04abc" + b"\x01" + uvarint(len(state)) + state
    parsed = parse_fetch(request(partition_tags=partition_tags, tags=tags), 0, 18)
    assert (parsed.replica_id, parsed.replica_epoch, parsed.cluster_id) == (2, 33, "abc")
    assert parsed.topics[0].partitions[0][6:] == (DIRECTORY_ID, 99)


def test_a_tagged_field_of_a_later_version_is_stepped_over() -> None:
    partition_tags = b"\x02\x00\x10" + DIRECTORY_ID + b"\x01\x08" + struct.pack(">q", 99)
    parsed = parse_fetch(request(version=16, partition_tags=partition_tags), 0, 16)
    assert parsed.topics[0].partitions[0][6:] == (ZERO_UUID, NO_HIGH_WATERMARK)
    parsed = parse_fetch(request(version=12, tags=b"\x01\x01\x01?"), 0, 12)
    assert (parsed.replica_id, parsed.topics[0].name) == (5, "t")


def test_unknown_tagged_fields_inside_the_replica_state_are_stepped_over() -> None:
    state = struct.pack(">iq", 2, 33) + b"\x01\x07\x01?"
    parsed = parse_fetch(request(tags=b"\x01\x01" + uvarint(len(state)) + state), 0, 18)
    assert (parsed.replica_id, parsed.replica_epoch) == (2, 33)


@pytest.mark.parametrize(
    "tags",
    [
        b"\x01\x01\x05" + bytes(5),
        b"\x01\x01\x0e" + bytes(14),
        b"\x01\x00\x05\x04abc?",
        b"\x01\x00\x03\x04abc",
        b"\x01\x00\x00",
    ],
)
def test_a_tagged_field_with_a_wrong_length_is_refused(tags: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        parse_fetch(request(tags=tags), 0, 18)


@pytest.mark.parametrize(
    "partition_tags", [b"\x01\x00\x0f" + bytes(15), b"\x01\x01\x09" + bytes(9)]
)
def test_a_partition_s_tagged_field_with_a_wrong_length_is_refused(partition_tags: bytes) -> None:
    with pytest.raises(MalformedFrameError, match="tagged field"):
        parse_fetch(request(partition_tags=partition_tags), 0, 18)


@pytest.mark.parametrize("version", [18, 14, 12])
def test_every_cut_is_refused_and_extra_bytes_are_ignored(version: int) -> None:
    frame = request(version=version)
    parsed = parse_fetch(frame, 0, version)
    for length in range(len(frame)):
        with pytest.raises(MalformedFrameError):
            parse_fetch(frame[:length], 0, version)
    assert parse_fetch(request(version=version, tail=b"\x00"), 0, version) == parsed


def classic_request(version: int) -> memoryview:
    head = struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0)
    if version >= 7:
        head += struct.pack(">ii", 11, 12)
    partition = struct.pack(">i", 3)
    if version >= 9:
        partition += struct.pack(">i", 4)
    partition += struct.pack(">q", 5)
    if version >= 5:
        partition += struct.pack(">q", 7)
    partition += struct.pack(">i", 8)
    body = head + struct.pack(">i", 1) + string("t") + struct.pack(">i", 1) + partition
    if version >= 7:
        body += struct.pack(">i", 1) + string("u") + struct.pack(">iii", 2, 1, 2)
    if version >= 11:
        body += string("rack")
    return memoryview(body)


@pytest.mark.parametrize("version", range(4, 12))
def test_old_versions_leave_defaults_for_what_they_lack(version: int) -> None:
    frame = classic_request(version)
    parsed = parse_fetch(frame, 0, version)
    assert parsed.topics[0].partitions == [
        FetchPartition(3, 4 if version >= 9 else -1, 5, -1, 7 if version >= 5 else -1, 8)
    ]
    assert parsed[5:7] == ((11, 12) if version >= 7 else (0, -1))
    assert parsed.forgotten_topics == ([("u", ZERO_UUID, [1, 2])] if version >= 7 else [])
    assert parsed.rack_id == ("rack" if version >= 11 else "")
    for length in range(len(frame)):
        with pytest.raises(MalformedFrameError):
            parse_fetch(frame[:length], 0, version)


def test_too_many_partitions_are_refused() -> None:
    head = struct.pack(">iiibii", 500, 1, 1 << 20, 1, 11, 12)
    count = MAX_PARTITIONS + 1
    frame = head + b"\x02" + TOPIC_ID + uvarint(count + 1) + bytes(34 * count)
    with pytest.raises(MalformedFrameError, match="over 100000 topics, partitions"):
        parse_fetch(memoryview(frame), 0, 18)
    frame = head + b"\x01\x02" + TOPIC_ID + uvarint(count + 1) + bytes(5 * count)
    with pytest.raises(MalformedFrameError, match="over 100000 topics, partitions"):
        parse_fetch(memoryview(frame), 0, 18)


def test_topics_without_partitions_count_as_well() -> None:
    flexible = struct.pack(">iiibii", 500, 1, 1 << 20, 1, 11, 12)
    classic = struct.pack(">iiiib", -1, 500, 1, 1 << 20, 1)
    count = MAX_PARTITIONS + 1
    topics = (TOPIC_ID + b"\x01\x00") * count
    for version, frame in (
        (18, flexible + uvarint(count + 1) + topics + b"\x01\x01\x00"),
        (18, flexible + b"\x01" + uvarint(count + 1) + topics + b"\x01\x00"),
        (4, classic + struct.pack(">i", count) + (b"\x00\x01t" + bytes(4)) * count),
    ):
        with pytest.raises(MalformedFrameError, match="over 100000 topics, partitions"):
            parse_fetch(memoryview(frame), 0, version)


def test_tagged_fields_of_all_partitions_together_are_bounded() -> None:
    head = struct.pack(">iiibii", 500, 1, 1 << 20, 1, 11, 12)
    tags = uvarint(100) + b"\x7f\x00" * 100
    partitions = (bytes(32) + tags) * 1500
    frame = head + b"\x02" + TOPIC_ID + uvarint(1501) + partitions + b"\x00\x01\x01\x00"
    with pytest.raises(MalformedFrameError, match="tags"):
        parse_fetch(memoryview(frame), 0, 18)


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_records_are_separate_buffers_and_not_copied(version: int) -> None:
    first, second, third = Slice(1000), b"records", Slice(70_000)
    results = [
        FetchPartitionResult(0, records=first),
        FetchPartitionResult(1, records=b""),
        FetchPartitionResult(2, records=second),
        FetchPartitionResult(3, records=None),
    ]
    topics = [("t", TOPIC_ID, results), ("u", TOPIC_ID, [FetchPartitionResult(0, records=third)])]
    pieces = encode_fetch(version, topics=topics)
    assert pieces[1] is first
    assert pieces[3] is second
    assert pieces[5] is third
    assert len(pieces) == (7 if version >= 12 else 6)
    assert all(isinstance(piece, bytes) for piece in pieces[::2])


def test_response_without_topics_is_one_buffer() -> None:
    assert encode_fetch(18, topics=[], error_code=71, session_id=5) == [
        b"\x00\x00\x00\x00\x00\x47\x00\x00\x00\x05\x01\x00"
    ]
    assert encode_fetch(4, topics=[], throttle_time_ms=9) == [b"\x00\x00\x00\x09\x00\x00\x00\x00"]


def test_node_endpoints_are_included_from_version_16() -> None:
    endpoints = [(4, "host", 9092, "r")]
    assert b"host" not in b"".join(encode_fetch(15, topics=[], node_endpoints=endpoints))
    assert b"host" in b"".join(encode_fetch(16, topics=[], node_endpoints=endpoints))
