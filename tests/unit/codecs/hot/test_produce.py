import struct

import pytest

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.hot.produce import MAX_PARTITIONS, ProduceTopic, parse_produce
from wirebroker.codecs.hot.produce_response import PartitionResult, encode_produce
from wirebroker.codecs.primitives import ZERO_UUID, compact_string, string, uvarint

TOPIC_ID = bytes(range(16))


def flexible(
    records: bytes | None, *, version: int = 13, index: int = 3, tags: bytes = b"\x00"
) -> memoryview:
    topic = TOPIC_ID if version >= 13 else compact_string("topic")
    data = b"\x00" if records is None else uvarint(len(records) + 1) + records
    partition = struct.pack(">i", index) + data + tags
    head = b"\x00" + struct.pack(">hi", -1, 30_000)
    return memoryview(head + b"\x02" + topic + b"\x02" + partition + tags + tags)


def classic(records: bytes | None) -> memoryview:
    data = b"\xff" * 4 if records is None else struct.pack(">i", len(records)) + records
    head = string("tx") + struct.pack(">hii", 1, 500, 1)
    return memoryview(head + string("topic") + struct.pack(">ii", 1, 3) + data)


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 16382, 16383, 16384, 70_000])
def test_records_are_a_view_into_the_frame(length: int) -> None:
    frame = flexible(b"r" * length)
    request = parse_produce(frame, 0, 13)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (None, -1, 30_000)
    (topic,) = request.topics
    assert (topic.name, topic.topic_id) == ("", TOPIC_ID)
    ((index, records),) = topic.partitions
    assert index == 3
    assert records is not None
    assert records.obj is frame.obj
    assert records == b"r" * length


def test_versions_up_to_12_use_topic_names() -> None:
    for frame, version in (
        (flexible(b"r", version=12), 12),
        (classic(b"r"), 8),
        (classic(b"r"), 3),
    ):
        (topic,) = parse_produce(frame, 0, version).topics
        assert (topic.name, topic.topic_id) == ("topic", ZERO_UUID)
        assert bytes(topic.partitions[0][1] or b"") == b"r"
    assert parse_produce(classic(b"r"), 0, 3).transactional_id == "tx"


def test_null_records_are_none() -> None:
    assert parse_produce(flexible(None), 0, 13).topics[0].partitions[0][1] is None
    assert parse_produce(classic(None), 0, 7).topics[0].partitions[0][1] is None


def test_unknown_tagged_fields_are_stepped_over() -> None:
    frame = flexible(b"rr", tags=b"\x01\x2a\x03abc")
    assert bytes(parse_produce(frame, 0, 13).topics[0].partitions[0][1] or b"") == b"rr"


@pytest.mark.parametrize("version", [13, 12, 8])
def test_every_cut_is_refused_and_extra_bytes_are_ignored(version: int) -> None:
    frame = flexible(b"records", version=version) if version >= 9 else classic(b"records")
    for length in range(len(frame)):
        with pytest.raises(MalformedFrameError):
            parse_produce(frame[:length], 0, version)
    (extended_topic,) = parse_produce(memoryview(bytes(frame) + b"\x00"), 0, version).topics
    (topic,) = parse_produce(frame, 0, version).topics
    assert [(index, bytes(records or b"")) for index, records in extended_topic.partitions] == [
        (index, bytes(records or b"")) for index, records in topic.partitions
    ]


@pytest.mark.parametrize("declared", [2**31 - 1, 2**31, 2**32 - 1])
def test_records_length_beyond_the_data_is_refused(declared: int) -> None:
    frame = bytes(flexible(b"")).replace(
        b"\x00\x00\x00\x03\x01", b"\x00\x00\x00\x03" + uvarint(declared)
    )
    with pytest.raises(MalformedFrameError):
        parse_produce(memoryview(frame), 0, 13)


@pytest.mark.parametrize("declared", [-2, -(2**31), 2**31 - 1])
def test_classic_records_length_beyond_the_data_is_refused(declared: int) -> None:
    frame = bytes(classic(b""))[:-4] + struct.pack(">i", declared)
    with pytest.raises(MalformedFrameError):
        parse_produce(memoryview(frame), 0, 8)


@pytest.mark.parametrize("count", [b"\x00", uvarint(2**32 - 1), uvarint(1000)])
def test_topic_count_beyond_the_data_is_refused(count: bytes) -> None:
    head = b"\x00" + struct.pack(">hi", 1, 0)
    with pytest.raises(MalformedFrameError):
        parse_produce(memoryview(head + count + bytes(50)), 0, 13)


@pytest.mark.parametrize("count", [-1, -(2**31), 2**31 - 1])
def test_classic_topic_count_beyond_the_data_is_refused(count: int) -> None:
    head = b"\xff\xff" + struct.pack(">hii", 1, 0, count)
    with pytest.raises(MalformedFrameError):
        parse_produce(memoryview(head + bytes(50)), 0, 8)


def test_too_many_partitions_are_refused() -> None:
    count = MAX_PARTITIONS + 1
    head = b"\x00" + struct.pack(">hi", 1, 0)
    flexible_frame = head + b"\x02" + TOPIC_ID + uvarint(count + 1) + bytes(6 * count) + b"\x00\x00"
    with pytest.raises(MalformedFrameError, match=f"over {MAX_PARTITIONS} partitions"):
        parse_produce(memoryview(flexible_frame), 0, 13)
    head = b"\xff\xff" + struct.pack(">hii", 1, 0, 1) + string("t") + struct.pack(">i", count)
    with pytest.raises(MalformedFrameError, match=f"over {MAX_PARTITIONS} partitions"):
        parse_produce(memoryview(head + bytes(8 * count)), 0, 8)


def test_too_many_empty_topics_are_refused() -> None:
    count = MAX_PARTITIONS + 1
    flexible_frame = (
        b"\x00" + struct.pack(">hi", 1, 0) + uvarint(count + 1) + b"\x01\x01\x00" * count
    )
    with pytest.raises(MalformedFrameError, match=f"over {MAX_PARTITIONS} partitions"):
        parse_produce(memoryview(flexible_frame + b"\x00"), 0, 12)
    head = b"\xff\xff" + struct.pack(">hii", 1, 0, count)
    with pytest.raises(MalformedFrameError, match=f"over {MAX_PARTITIONS} partitions"):
        parse_produce(memoryview(head + bytes(6 * count)), 0, 8)


def test_tagged_fields_of_all_partitions_together_are_bounded() -> None:
    head = b"\x00" + struct.pack(">hi", 1, 0)
    partitions = (bytes(5) + uvarint(100) + b"\x7f\x00" * 100) * 1500
    frame = head + b"\x02" + TOPIC_ID + uvarint(1501) + partitions + b"\x00\x00"
    with pytest.raises(MalformedFrameError, match="too many tagged fields"):
        parse_produce(memoryview(frame), 0, 13)


def test_version_13_response_without_errors_is_encoded() -> None:
    topic = ProduceTopic("", TOPIC_ID, [])
    assert encode_produce(13, [(topic, [PartitionResult(3, 0, 5, -1, 2)])], 7).hex(" ") == (
        "02 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 02 00 00 00 03 00 00"
        " 00 00 00 00 00 00 00 05 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 02"
        " 01 00 00 00 00 00 00 07 00"
    )


def test_error_messages_and_leaders_depend_on_the_version() -> None:
    topic = ProduceTopic("t", TOPIC_ID, [])
    result = PartitionResult(
        0, 6, record_errors=[(1, "bad"), (2, None)], error_message="worse", current_leader=(4, 9)
    )
    endpoints = [(4, "host", 9092, None)]
    new, middle, old, oldest = (
        encode_produce(version, [(topic, [result])], node_endpoints=endpoints)
        for version in (10, 9, 8, 7)
    )
    assert b"\x01\x00\x09\x00\x00\x00\x04\x00\x00\x00\x09\x00" in new
    assert new.endswith(b"\x01\x00\x10\x02\x00\x00\x00\x04\x05host\x00\x00\x23\x84\x00\x00")
    assert b"\x04bad" in middle
    assert middle.endswith(b"\x06worse\x00\x00\x00\x00\x00\x00\x00")
    assert b"\x00\x03bad\x00\x00\x00\x02\xff\xff\x00\x05worse" in old
    assert b"worse" not in oldest
    assert len(oldest) == len(encode_produce(7, [(topic, [PartitionResult(0)])]))
