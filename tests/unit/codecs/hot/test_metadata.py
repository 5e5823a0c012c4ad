import struct

import pytest

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.hot.metadata import (
    MAX_TOPICS,
    MetadataRequest,
    PartitionView,
    TopicView,
    encode_metadata,
    encode_topic,
    parse_metadata,
)
from wirebroker.codecs.primitives import ZERO_UUID, uvarint

TOPIC_ID = bytes(range(16))


def parse(data: bytes, version: int) -> MetadataRequest:
    return parse_metadata(memoryview(data), 0, version)


def test_in_version_0_an_empty_list_means_all_topics() -> None:
    assert parse(bytes(4), 0) == MetadataRequest(None, True, False, False)
    with pytest.raises(MalformedFrameError):
        parse(b"\xff" * 4, 0)


def test_from_version_1_null_means_all_topics_and_empty_none() -> None:
    assert parse(b"\xff" * 4, 1).topics is None
    assert parse(bytes(4), 1).topics == []
    assert parse(b"\x00\x01\x00\x00", 12).topics is None
    assert parse(b"\x01\x01\x00\x00", 12).topics == []


def test_flags_are_read_at_the_position_of_their_version() -> None:
    none = b"\x00" * 4
    assert parse(none + b"\x00", 4) == MetadataRequest([], False)
    assert parse(none + b"\x00\x01\x00", 8) == MetadataRequest([], False, True, False)
    assert parse(b"\x01\x01\x00\x01\x00", 10) == MetadataRequest([], True, False, True)
    assert parse(b"\x01\x00\x01\x00", 11) == MetadataRequest([], False, False, True)


def test_topics_are_asked_for_by_name_or_by_id() -> None:
    assert parse(b"\x00\x00\x00\x01\x00\x01t", 1).topics == [(ZERO_UUID, "t")]
    assert parse(b"\x02\x02t\x00\x01\x00\x00\x00", 9).topics == [(ZERO_UUID, "t")]
    data = b"\x03" + ZERO_UUID + b"\x02t\x00" + TOPIC_ID + b"\x00\x00" + b"\x01\x00\x00"
    assert parse(data, 12).topics == [(ZERO_UUID, "t"), (TOPIC_ID, None)]


def test_version_9_has_no_null_name() -> None:
    with pytest.raises(MalformedFrameError, match="null"):
        parse(b"\x02\x00\x00\x01\x00\x00\x00", 9)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, b"\x00\x00\x00\x01\x00\x01t"),
        (8, b"\x00\x00\x00\x01\x00\x01t\x01\x00\x01"),
        (9, b"\x02\x02t\x00\x01\x00\x00\x00"),
        (13, b"\x02" + TOPIC_ID + b"\x02t\x00\x01\x00\x00"),
    ],
)
def test_every_cut_is_refused_and_extra_bytes_are_passed_over(version: int, data: bytes) -> None:
    parse(data, version)
    for length in range(len(data)):
        with pytest.raises(MalformedFrameError):
            parse(data[:length], version)
    assert parse(data + b"\x00\x00\x00", version) == parse(data, version)


def test_array_count_beyond_the_data_is_refused() -> None:
    for version, count in ((1, struct.pack(">i", 2**31 - 1)), (12, uvarint(2**32 - 1))):
        with pytest.raises(MalformedFrameError, match="ends beyond"):
            parse(count + bytes(100), version)


def test_more_than_100000_topics_are_refused() -> None:
    with pytest.raises(MalformedFrameError, match="over 100000"):
        parse(struct.pack(">i", MAX_TOPICS + 1) + b"\x00\x01t" * (MAX_TOPICS + 1), 1)


def test_tagged_fields_of_all_topics_together_are_bounded() -> None:
    topics = (b"\x02t" + uvarint(100) + b"\x7f\x00" * 100) * 1500
    with pytest.raises(MalformedFrameError, match="too many tagged fields"):
        parse(uvarint(1501) + topics + b"\x01\x00\x00\x00", 9)


@pytest.mark.parametrize("version", range(14))
def test_fast_path_for_one_replica_encodes_the_same_bytes(version: int) -> None:
    short = PartitionView(5, 1, 7, (1,), (1,))
    topic = encode_topic(version, TopicView("t", TOPIC_ID, partitions=[short]))
    twice = encode_topic(
        version, TopicView("t", TOPIC_ID, partitions=[PartitionView(5, 1, 7, (1,), (1, 2))])
    )
    # Two in-sync replicas: one more node id and a larger count.
    assert len(twice) == len(topic) + 4
    if version >= 9:
        assert (
            topic.replace(b"\x02\x00\x00\x00\x01\x01\x00", b"\x03\x00\x00\x00\x01\0\0\0\2\x01\x00")
            == twice
        )


def test_a_null_name_needs_version_12() -> None:
    assert encode_topic(12, TopicView(None, TOPIC_ID, error_code=100)).startswith(b"\x00\x64\x00")
    with pytest.raises(AssertionError):
        encode_topic(11, TopicView(None, TOPIC_ID, error_code=100))


def test_version_1_response_is_encoded() -> None:
    topic = encode_topic(1, TopicView("t", is_internal=True))
    (data,) = encode_metadata(
        1, brokers=[(2, "h", 9092, None)], cluster_id="c", controller_id=2, topics=[topic]
    )
    assert data.hex(" ") == (
        "00 00 00 01 00 00 00 02 00 01 68 00 00 23 84 ff ff 00 00 00 02"
        " 00 00 00 01 00 00 00 01 74 01 00 00 00 00"
    )


def test_version_13_ends_with_the_top_level_error() -> None:
    (data,) = encode_metadata(
        13, brokers=[], cluster_id=None, controller_id=-1, topics=[], error_code=129
    )
    assert data.hex(" ") == "00 00 00 00 01 00 ff ff ff ff 01 00 81 00"
