"""The records of consumer, share and streams groups, and those of share states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.records.recorded import Recorded, recorded_records
from wirebroker.codecs.coordinator_records import GroupKey, OffsetKey, UnknownKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    RegularExpressionKey,
    WholeGroupKey,
    decode_record_key,
    decode_record_value,
    encode_record_key,
    group_record,
    group_record_tombstone,
)
from wirebroker.codecs.share_state_records import (
    ShareStateKey,
    ShareStateKind,
    decode_share_state_key,
    decode_share_state_value,
    share_state_record,
    share_state_tombstone,
)

if TYPE_CHECKING:
    from wirebroker.codecs.group_records import GroupRecordKey

RECORDED = recorded_records()
MEMBER_KINDS = {5, 7, 8, 10, 13, 14, 19, 21, 22}
MEMBER = GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA


@pytest.mark.parametrize("kind", GroupRecordKind)
def test_keys_are_a_kind_and_names(kind):
    key: GroupRecordKey
    if kind in MEMBER_KINDS:
        key, body = GroupMemberKey(kind, "g", "m"), b"\x00\x01g\x00\x01m"
    elif kind == 16:
        key, body = RegularExpressionKey(kind, "g", "t.*"), b"\x00\x01g\x00\x03t.*"
    else:
        key, body = WholeGroupKey(kind, "g"), b"\x00\x01g"
    assert encode_record_key(key) == kind.to_bytes(2) + body
    decoded = decode_record_key(kind.to_bytes(2) + body)
    assert (type(decoded), decoded) == (type(key), key)


def test_keys_of_classic_groups_are_decoded_too():
    assert decode_record_key(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x02") == OffsetKey(
        "g", "t", 2
    )
    assert decode_record_key(b"\x00\x02\x00\x01g") == GroupKey("g")


@pytest.mark.parametrize("kind", [9, 18, 24, 0x7FFF])
def test_other_kinds_are_named_by_their_number(kind):
    assert decode_record_key(kind.to_bytes(2) + b"whatever") == UnknownKey(kind)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"\x00",
        b"\x00\x03",
        b"\x00\x03\x00\x05g",
        b"\x00\x03\x00\x01\xff",
        b"\x00\x03\xff\xff",
        b"\x00\x03\x00\x01gg",
        b"\x00\x05\x00\x01g",
        b"\x00\x05\x00\x01g\x00\x02m",
        b"\x00\x05\x00\x01g\x00\x01mm",
        b"\x00\x10\x00\x01g\x00\x02",
    ],
)
def test_key_that_does_not_fit_is_malformed(key):
    with pytest.raises(MalformedFrameError):
        decode_record_key(key)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"\x00\x00",
        b"\x00\x00\x00\x01g" + bytes(19),
        b"\x00\x01\x00\x01g" + bytes(21),
        b"\x00\x00\x00\x01\xff" + bytes(20),
    ],
)
def test_key_of_a_share_state_that_does_not_fit_is_malformed(key):
    with pytest.raises(MalformedFrameError):
        decode_share_state_key(key)


def test_key_of_a_share_state_has_a_topic_id():
    topic_id = bytes(range(16))
    key = ShareStateKey(ShareStateKind.SHARE_UPDATE, "g", topic_id, 2)
    encoded = b"\x00\x01\x00\x01g" + topic_id + b"\x00\x00\x00\x02"
    assert share_state_tombstone(key) == (encoded, None)
    assert decode_share_state_key(encoded) == key
    assert decode_share_state_key(b"\x00\x02whatever") is None


@pytest.mark.parametrize("value", [b"\x00\x01", b"\xff\xff"])
def test_other_versions_are_not_supported(value):
    for decode in (
        lambda: decode_record_value(MEMBER, value),
        lambda: decode_share_state_value(ShareStateKind.SHARE_SNAPSHOT, value),
    ):
        with pytest.raises(KafkaError) as refusal:
            decode()
        assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x00"])
def test_value_that_is_cut_off_is_malformed(value):
    with pytest.raises(MalformedFrameError):
        decode_record_value(MEMBER, value)


def test_classic_member_metadata_is_null_unless_it_is_omitted():
    key = GroupMemberKey(MEMBER, "g", "m")
    null = group_record(key, classic_member_metadata=None).value
    omitted = group_record(key).value
    assert null is not None
    assert omitted is not None
    # One tagged field: number 0, one byte, null.
    assert null[-4:] == b"\x01\x00\x01\x00"
    assert omitted[-1:] == b"\x00"
    assert decode_record_value(MEMBER, null).classic_member_metadata is None
    assert decode_record_value(MEMBER, omitted).classic_member_metadata.session_timeout_ms == 0
    given = group_record(key, classic_member_metadata={"session_timeout_ms": 5}).value
    assert given is not None
    assert decode_record_value(MEMBER, given).classic_member_metadata.session_timeout_ms == 5


def test_tombstones_have_no_value():
    key = WholeGroupKey(GroupRecordKind.SHARE_GROUP_METADATA, "g")
    assert group_record_tombstone(key) == (b"\x00\x0b\x00\x01g", None)


@pytest.mark.parametrize("recorded", RECORDED, ids=str)
def test_records_of_apache_kafka_are_read_and_written_again(recorded: Recorded):
    if recorded.topic == "__share_group_state":
        key = decode_share_state_key(recorded.key)
        assert key is not None
        if recorded.value is None:
            assert share_state_tombstone(key) == (recorded.key, None)
            return
        fields = decode_share_state_value(key.kind, recorded.value).as_dict()
        assert share_state_record(key, **fields) == (recorded.key, recorded.value)
        return
    group_key = decode_record_key(recorded.key)
    if isinstance(group_key, OffsetKey | GroupKey):
        return
    assert not isinstance(group_key, UnknownKey)
    if recorded.value is None:
        assert group_record_tombstone(group_key) == (recorded.key, None)
        return
    fields = decode_record_value(group_key.kind, recorded.value).as_dict()
    assert group_record(group_key, **fields) == (recorded.key, recorded.value)


def test_records_of_each_kind_were_recorded():
    numbers = {
        (recorded.topic, int.from_bytes(recorded.key[:2]))
        for recorded in RECORDED
        if recorded.value is not None
    }
    # Kafka since 4.1 writes no records of kind 4.
    expected = {("__consumer_offsets", int(kind)) for kind in GroupRecordKind if kind != 4}
    assert numbers >= expected | {("__share_group_state", int(kind)) for kind in ShareStateKind}
