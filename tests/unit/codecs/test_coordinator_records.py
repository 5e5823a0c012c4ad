"""The records of `__consumer_offsets`: the bytes of Apache Kafka 4.3.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.codecs.coordinator_records import (
    CommittedOffset,
    GroupKey,
    OffsetKey,
    UnknownKey,
    decode_committed_offset,
    decode_group_metadata,
    decode_key,
    encode_committed_offset,
    group_key,
    group_metadata_record,
    group_prefix,
    group_tombstone,
    offset_commit_record,
    offset_key,
    partition_suffix,
    read_partition_suffix,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError

TOPIC_ID = bytes(range(16))
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_the_key_of_an_offset():
    key = offset_key("group", "topic", 7)
    assert key.hex(" ") == "00 01 00 05 67 72 6f 75 70 00 05 74 6f 70 69 63 00 00 00 07"
    assert decode_key(key) == OffsetKey("group", "topic", 7)
    assert decode_key(b"\x00\x00" + key[2:]) == OffsetKey("group", "topic", 7)
    assert key == group_prefix("group") + partition_suffix("topic", 7)


def test_the_key_of_a_group():
    assert group_key("g").hex(" ") == "00 02 00 01 67"
    assert decode_key(group_key("g")) == GroupKey("g")


def test_other_kinds_are_named_by_their_number():
    assert decode_key(b"\x00\x03whatever") == UnknownKey(3)


@pytest.mark.parametrize("key", [b"", b"\x00\x01", b"\x00\x02\x00\x05g", b"\x00\x02\x00\x01\xff"])
def test_a_key_that_does_not_fit_is_malformed(key):
    with pytest.raises(MalformedFrameError):
        decode_key(key)


def test_a_commit_is_written_at_version_4_with_the_topics_id():
    value = encode_committed_offset(CommittedOffset(258, 3, "m", 515, topic_id=TOPIC_ID))
    assert value.hex() == (
        "0004"
        + "0000000000000102"
        + "00000003"
        + "026d"
        + f"{515:016x}"
        + "010010"
        + TOPIC_ID.hex()
    )
    assert decode_committed_offset(value).topic_id == TOPIC_ID


def test_a_commit_by_name_has_no_tags():
    value = encode_committed_offset(CommittedOffset(258, -1, "", 515))
    assert value.hex() == "0004" + "0000000000000102" + "ffffffff" + "01" + f"{515:016x}" + "00"


def test_a_commit_that_expires_is_written_at_version_1():
    value = encode_committed_offset(CommittedOffset(258, -1, "m", 515, 772))
    assert value.hex() == "0001" + "0000000000000102" + "00016d" + f"{515:016x}" + f"{772:016x}"
    assert decode_committed_offset(value).expire_timestamp_ms == 772


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000" + "00000000000000050000" + f"{9:016x}", CommittedOffset(5, -1, "", 9)),
        ("0002" + "00000000000000050000" + f"{9:016x}", CommittedOffset(5, -1, "", 9)),
        ("0003" + "0000000000000005000000020000" + f"{9:016x}", CommittedOffset(5, 2, "", 9)),
    ],
)
def test_older_versions_are_read(value, expected):
    assert decode_committed_offset(bytes.fromhex(value)) == expected


@given(INT64, INT32, st.text(st.characters(exclude_categories=["Cs"]), max_size=300), INT64)
def test_a_commit_is_read_as_it_was_written(offset, epoch, metadata, timestamp):
    committed = CommittedOffset(offset, epoch, metadata, timestamp, topic_id=TOPIC_ID)
    assert decode_committed_offset(encode_committed_offset(committed)) == committed


@given(NAME, NAME, st.integers(0, (1 << 31) - 1))
def test_keys_are_read_as_they_were_written(group_id, topic, partition):
    assert decode_key(offset_key(group_id, topic, partition)) == OffsetKey(
        group_id, topic, partition
    )
    assert read_partition_suffix(partition_suffix(topic, partition)) == (topic, partition)
    assert decode_key(group_key(group_id)) == GroupKey(group_id)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    for decode in (decode_key, decode_committed_offset, decode_group_metadata):
        try:
            decode(data)
        except (MalformedFrameError, KafkaError):
            continue


def test_a_future_version_is_not_supported():
    with pytest.raises(KafkaError) as refusal:
        decode_committed_offset(b"\x00\x05")
    assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_group_is_written_at_version_3():
    record = group_metadata_record(
        "g",
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="m",
        current_state_timestamp=2,
        members=[
            {
                "member_id": "m",
                "group_instance_id": None,
                "client_id": "c",
                "client_host": "/h",
                "rebalance_timeout": 3,
                "session_timeout": 4,
                "subscription": b"s",
                "assignment": b"a",
            }
        ],
    )
    assert record.key == group_key("g")
    assert record.value == (
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x01\x00\x05range\x00\x01m"
        + (2).to_bytes(8)
        + b"\x00\x00\x00\x01\x00\x01m\xff\xff\x00\x01c\x00\x02/h"
        + b"\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x01s\x00\x00\x00\x01a"
    )
    assert decode_group_metadata(record.value).members[0].client_host == "/h"


def test_tombstones_have_no_value():
    assert group_tombstone("g") == (group_key("g"), None)
    assert offset_commit_record("g", "t", 1, CommittedOffset(1, 1, "", 1)).key == offset_key(
        "g", "t", 1
    )
