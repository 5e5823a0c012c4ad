"""The generic codec with all kinds of input from peers and handlers."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import pytest

from tests.support.protocol.message_schemas import schema_of
from tests.support.protocol.message_values import KEYS, versions_of
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_message,
    response_message,
)
from wirebroker.codecs.primitives import uvarint

CREATE_TOPICS = {
    "topics": [
        {
            "name": "orders",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": [1, 2]}],
            "configs": [{"name": "cleanup.policy", "value": None}],
        }
    ],
    "timeout_ms": 1000,
}


def test_definitions_cover_the_versions_that_are_advertised() -> None:
    for key, versions in API_VERSIONS.items():
        for message in (request_message(key), response_message(key)):
            assert message.number == key
            for version in versions_of(key):
                assert version in message.versions, key
                is_flexible = version >= versions.first_flexible
                assert is_flexible == (version in schema_of(message).flexible_versions), key


def test_every_key_of_kafka_4_has_a_request_and_a_response() -> None:
    for key in KEYS:
        assert request_message(key).number == key
        assert response_message(key).number == key
        assert request_message(key).versions == response_message(key).versions


def test_a_key_that_kafka_4_has_dropped_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="stop_replica_request"):
        request_message(ApiKey.STOP_REPLICA)


def test_wire_form_of_a_flexible_request() -> None:
    body = encode_request(ApiKey.CREATE_TOPICS, 7, CREATE_TOPICS)
    assert body == (
        b"\x02"  # one topic
        + b"\x07orders"
        + b"\xff\xff\xff\xff\xff\xff"
        + b"\x02\x00\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00"  # assignments
        + b"\x02\x0fcleanup.policy\x00\x00"  # configs
        + b"\x00"
        + b"\x00\x00\x03\xe8\x00\x00"
    )


def test_wire_form_of_an_inflexible_request() -> None:
    body = encode_request(ApiKey.CREATE_TOPICS, 4, CREATE_TOPICS)
    assert body == (
        b"\x00\x00\x00\x01"
        + b"\x00\x06orders"
        + b"\xff\xff\xff\xff\xff\xff"
        + b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02"
        + b"\x00\x00\x00\x01\x00\x0ecleanup.policy\xff\xff"
        + b"\x00\x00\x03\xe8\x00"
    )


@pytest.mark.parametrize("version", [4, 7])
def test_a_request_is_read_into_attributes(version: int) -> None:
    body = decode_request(
        ApiKey.CREATE_TOPICS, version, encode_request(ApiKey.CREATE_TOPICS, version, CREATE_TOPICS)
    )
    assert body.topics[0].assignments[0].broker_ids == [1, 2]
    assert body.topics[0].configs[0].value is None
    assert body.validate_only is False
    assert body.as_dict() == {**CREATE_TOPICS, "validate_only": False}


def test_the_body_begins_at_the_position_given() -> None:
    body = encode_request(ApiKey.CREATE_TOPICS, 7, CREATE_TOPICS)
    frame = memoryview(bytearray(b"header" + body))
    value = decode_request(ApiKey.CREATE_TOPICS, 7, frame, 6)
    assert encode_request(ApiKey.CREATE_TOPICS, 7, value) == body


def test_fields_that_the_version_lacks_have_their_defaults() -> None:
    body = decode_request(
        ApiKey.DESCRIBE_CONFIGS, 1, encode_request(ApiKey.DESCRIBE_CONFIGS, 1, {"resources": []})
    )
    assert body.include_documentation is False
    cluster = decode_response(ApiKey.CREATE_TOPICS, 4, encode_response(ApiKey.CREATE_TOPICS, 4, {}))
    assert cluster.topics == []


def test_decoded_message_holds_no_reference_to_the_frame() -> None:
    frame = bytearray(encode_request(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"secret"}))
    value = decode_request(ApiKey.SASL_AUTHENTICATE, 2, memoryview(frame))
    frame[:] = bytes(len(frame))
    frame.clear()  # would raise BufferError if a view of it were left
    assert value.auth_bytes == b"secret"


@pytest.mark.parametrize("size", [1000, 2 << 20])
def test_records_are_views_only_when_requested(size: int) -> None:
    records = bytes(range(250)) * (size // 250)
    partition = {"partition_index": 3, "records": records}
    answer = {"responses": [{"partitions": [partition]}]}
    frame = bytearray(encode_response(ApiKey.FETCH, 17, answer))
    copied = decode_response(ApiKey.FETCH, 17, memoryview(frame)).responses[0].partitions[0]
    viewed = decode_response(ApiKey.FETCH, 17, frame, keep_views=True).responses[0].partitions[0]
    assert isinstance(copied.records, bytes)
    assert isinstance(viewed.records, memoryview)
    assert viewed.records.obj is frame
    assert copied.records == viewed.records == records


def test_frame_above_one_mebibyte_is_read_the_same_way() -> None:
    topics = [{"name": f"topic-{number:05}", "num_partitions": number} for number in range(60_000)]
    frame = encode_request(ApiKey.CREATE_TOPICS, 7, {"topics": topics})
    assert len(frame) > 1 << 20
    value = decode_request(ApiKey.CREATE_TOPICS, 7, memoryview(frame))
    assert value.topics[59_999].name == "topic-59999"
    assert encode_request(ApiKey.CREATE_TOPICS, 7, value) == frame


def test_an_unknown_tagged_field_is_stepped_over() -> None:
    body = encode_request(ApiKey.INIT_PRODUCER_ID, 5, {"transaction_timeout_ms": 7})
    tagged = body[:-1] + b"\x02" + b"\x63\x03abc" + b"\xe8\x07\x00"
    assert decode_request(ApiKey.INIT_PRODUCER_ID, 5, tagged).transaction_timeout_ms == 7


def test_an_unknown_tagged_field_beside_a_known_one_is_stepped_over() -> None:
    body = encode_request(ApiKey.FETCH, 17, {"cluster_id": "abc"})
    assert body.endswith(b"\x01\x00\x04\x04abc")
    tagged = body[:-7] + b"\x03" + b"\x63\x01z" + body[-6:] + b"\x64\x00"
    assert decode_request(ApiKey.FETCH, 17, tagged).cluster_id == "abc"


def test_a_tagged_field_at_its_default_is_not_written() -> None:
    default = encode_request(ApiKey.FETCH, 17, {})
    defaults = {"cluster_id": None, "replica_state": {"replica_id": -1, "replica_epoch": -1}}
    assert encode_request(ApiKey.FETCH, 17, defaults) == default


@pytest.mark.parametrize(
    ("cause", "frame"),
    [
        ("null array", b"\x00" + b"\x00\x00\x00\x00\x00\x00"),
        ("null name", b"\x02\x00" + bytes(12)),
        ("name beyond the frame", b"\x02\x7fabcdefghijkl"),
        ("more topics than bytes", b"\xff\xff\xff\xff\x0f" + bytes(100)),
        ("varint of six bytes", b"\xff\xff\xff\xff\xff\x01" + bytes(100)),
        ("name that is not UTF-8", b"\x02\x03\xff\xfe" + bytes(12)),
        ("name of 32768 bytes", b"\x02" + uvarint(32769) + b"a" * 32768 + bytes(20)),
        ("tagged field beyond the frame", b"\x01\x00\x00\x00\x00\x00\x01\x00\x05ab"),
        ("more tagged fields than bytes", b"\x01\x00\x00\x00\x00\x00\x7f\x00\x00"),
        ("one byte too few", b"\x01\x00\x00\x00\x00\x00"),
        ("nothing", b""),
    ],
)
def test_a_flexible_request_is_refused_with(cause: str, frame: bytes) -> None:
    with pytest.raises(MalformedFrameError, match=r"CreateTopicsRequest|varint"):
        decode_request(ApiKey.CREATE_TOPICS, 7, frame)
    with pytest.raises(MalformedFrameError):
        decode_request(ApiKey.CREATE_TOPICS, 7, memoryview(frame))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_bytes_after_any_request_are_ignored(key: ApiKey) -> None:
    for version in request_message(key).versions:
        if key is ApiKey.PRODUCE and version < 3:
            continue
        data = encode_request(key, version, {})
        decoded = decode_request(key, version, data)
        decoded_extended = decode_request(key, version, data + b"\x00kafka-go")
        assert (
            encode_request(key, version, decoded_extended)
            == encode_request(key, version, decoded)
            == data
        )


@pytest.mark.parametrize("count", [2**31 - 1, -1, -2, -(2**31), 1000])
def test_an_inflexible_array_is_refused_with_count(count: int) -> None:
    frame = struct.pack(">i", count) + bytes(100)
    with pytest.raises(MalformedFrameError, match=r"CreateTopicsRequest\.topics"):
        decode_request(ApiKey.CREATE_TOPICS, 4, frame)


@pytest.mark.parametrize("length", [-1, -2, -32768, 32767])
def test_an_inflexible_string_is_refused_with_length(length: int) -> None:
    frame = struct.pack(">ih", 1, length) + bytes(100)
    with pytest.raises(MalformedFrameError, match=r"CreateTopicsRequest\.topics\.name"):
        decode_request(ApiKey.CREATE_TOPICS, 4, frame)


def test_a_nullable_string_is_refused_with_a_length_below_minus_one() -> None:
    with pytest.raises(MalformedFrameError, match="-2"):
        decode_request(ApiKey.INIT_PRODUCER_ID, 0, b"\xff\xfe\x00\x00\x00\x01")


def test_a_known_tagged_field_is_refused_when_its_length_is_wrong() -> None:
    body = encode_request(ApiKey.FETCH, 17, {"cluster_id": "abc"})
    for wrong in (b"\x01\x00\x03\x04abc", b"\x01\x00\x05\x04abc\x00"):
        with pytest.raises(MalformedFrameError, match="cluster_id"):
            decode_request(ApiKey.FETCH, 17, body[:-7] + wrong)


def test_two_million_tagged_fields_are_refused_without_being_kept() -> None:
    body = encode_request(ApiKey.INIT_PRODUCER_ID, 5, {})
    frame = body[:-1] + uvarint(2_000_000) + b"\x63\x00" * 2_000_000
    assert _peak_bytes_of_refusing(ApiKey.INIT_PRODUCER_ID, 5, frame) < 100_000


def test_hostile_counts_allocate_nothing() -> None:
    for frame in (b"\x7f\xff\xff\xff" + bytes(1000), b"\x00\x00\x00\x01\x7f\xff" + bytes(1000)):
        assert _peak_bytes_of_refusing(ApiKey.CREATE_TOPICS, 4, frame) < 100_000


def test_more_elements_than_allowed_are_refused_before_they_are_made() -> None:
    groups = {"groups_names": [""] * 1001}
    frame = encode_request(ApiKey.DELETE_GROUPS, 2, groups)
    with pytest.raises(MalformedFrameError, match="more elements"):
        decode_request(ApiKey.DELETE_GROUPS, 2, frame, max_elements=1000)
    assert len(decode_request(ApiKey.DELETE_GROUPS, 2, frame).groups_names) == 1001
    too_many = uvarint(600_001) + b"\x01" * 600_000 + b"\x00"
    assert _peak_bytes_of_refusing(ApiKey.DELETE_GROUPS, 2, too_many) < 700_000


def test_elements_are_counted_over_the_whole_message() -> None:
    topic = {"name": "t", "assignments": [{"partition_index": 0, "broker_ids": [1] * 10}]}
    frame = encode_request(ApiKey.CREATE_TOPICS, 7, {"topics": [topic] * 10})
    decode_request(ApiKey.CREATE_TOPICS, 7, frame, max_elements=120)
    with pytest.raises(MalformedFrameError, match="more elements"):
        decode_request(ApiKey.CREATE_TOPICS, 7, frame, max_elements=119)


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("has no field", {"topix": []}),
        ("has no field", {"topics": [{"nome": "t"}]}),
        ("not a mapping", {"topics": ["t"]}),
        ("has no len", {"topics": None}),
        ("not iterable", {"topics": 3}),
        ("encode", {"topics": [{"name": None}]}),
        ("encode", {"topics": [{"name": b"t"}]}),
        ("longer than", {"topics": [{"name": "t" * 32768}]}),
        ("surrogates", {"topics": [{"name": "\ud800"}]}),
        ("format requires", {"topics": [{"name": "t", "error_code": 32768}]}),
        ("not an integer", {"topics": [{"name": "t", "error_code": None}]}),
        ("16 bytes", {"topics": [{"name": "t", "topic_id": bytes(15)}]}),
        ("format requires", {"throttle_time_ms": 2**31}),
        ("not an integer", {"throttle_time_ms": "1"}),
    ],
)
def test_wrong_arguments_raise_assertion_errors(reason: str, value: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match=reason):
        encode_response(ApiKey.CREATE_TOPICS, 7, value)


def test_a_field_that_the_version_lacks_is_refused_unless_it_is_ignorable() -> None:
    with pytest.raises(AssertionError, match="include_documentation is set"):
        encode_request(ApiKey.DESCRIBE_CONFIGS, 1, {"include_documentation": True})
    ignorable = {"topics": [{"name": "t", "topic_id": b"x" * 16, "error_code": 36}]}
    without = {"topics": [{"name": "t", "error_code": 36}]}
    assert encode_response(ApiKey.CREATE_TOPICS, 4, ignorable) == encode_response(
        ApiKey.CREATE_TOPICS, 4, without
    )


def test_a_response_may_be_made_of_structs_and_mappings_mixed() -> None:
    topic = {"name": "t", "error_code": ErrorCode.TOPIC_ALREADY_EXISTS, "configs": None}
    expected = encode_response(ApiKey.CREATE_TOPICS, 7, {"topics": [topic]})
    value = response_message(ApiKey.CREATE_TOPICS).struct_class()
    value.topics.append(topic)
    assert encode_response(ApiKey.CREATE_TOPICS, 7, value) == expected
    assert encode_response(ApiKey.CREATE_TOPICS, 7, {"topics": tuple(value.topics)}) == expected
    made = response_message(ApiKey.CREATE_TOPICS).struct_class(topics=[topic])
    assert made.topics[0].name == "t"
    assert encode_response(ApiKey.CREATE_TOPICS, 7, made) == expected


def test_structs_are_equal_field_by_field_and_say_what_they_hold() -> None:
    make = response_message(ApiKey.INIT_PRODUCER_ID).struct_class
    assert make(producer_id=1) == make(producer_id=1)
    assert make(producer_id=1) != make(producer_id=2)
    assert make() != {}
    assert "producer_id=1" in repr(make(producer_id=1))
    with pytest.raises(AttributeError):
        make().produce_id = 3


def test_mutable_defaults_are_not_shared() -> None:
    make = request_message(ApiKey.CREATE_TOPICS).struct_class
    first, second = make(), make()
    first.topics.append(1)
    assert second.topics == []


def test_nullable_struct_is_none_or_a_struct() -> None:
    key = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    assert decode_request(key, 0, encode_request(key, 0, {})).cursor is None
    cursor = {"topic_name": "t", "partition_index": 3}
    value = decode_request(key, 0, encode_request(key, 0, {"cursor": cursor}))
    assert value.cursor.as_dict() == cursor


def test_undefined_versions_are_assertion_errors() -> None:
    assert request_message(ApiKey.CREATE_TOPICS).versions == range(2, 8)
    with pytest.raises(AssertionError, match="no version 8"):
        decode_request(ApiKey.CREATE_TOPICS, 8, b"")


def _peak_bytes_of_refusing(key: ApiKey, version: int, frame: bytes) -> int:
    with pytest.raises(MalformedFrameError):  # compiles the decoder, which allocates memory once
        decode_request(key, version, b"")
    tracemalloc.start()
    try:
        with pytest.raises(MalformedFrameError):
            decode_request(key, version, frame)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
