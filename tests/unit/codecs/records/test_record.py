import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import varint
from wirebroker.codecs.records.record import Record, encode_record, read_records


def read(payload: bytes, count: int, append_time: int | None = None) -> list[Record]:
    return list(
        read_records(
            payload, count=count, base_offset=100, base_timestamp=1000, append_time=append_time
        )
    )


def refused(payload: bytes, count: int) -> str:
    with pytest.raises(KafkaError) as caught:
        read(payload, count)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    return str(caught.value)


def body(data: bytes) -> bytes:
    return varint(len(data)) + data


@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 63, b"k" * 64, b"k" * 20_000])
@pytest.mark.parametrize("value", [None, b"", b"v" * 70])
@pytest.mark.parametrize("headers", [[], [("", None)], [("ä", b""), ("h" * 200, b"x" * 200)]])
@pytest.mark.parametrize(
    ("offset", "timestamp"), [(0, 0), (63, -64), (64, -65), (2**31 - 1, 2**62)]
)
def test_records_round_trip(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    offset: int,
    timestamp: int,
) -> None:
    encoded = encode_record(key, value, headers, offset_delta=offset, timestamp_delta=timestamp)
    (record,) = read(encoded, 1)
    assert record[:4] == (100 + offset, 1000 + timestamp, key, value)
    assert list(record.headers) == headers


def test_an_append_time_replaces_every_timestamp() -> None:
    payload = encode_record(b"k", b"v", (), offset_delta=0, timestamp_delta=5)
    assert read(payload, 1, append_time=77)[0].timestamp == 77


def test_a_header_key_that_is_not_utf_8_survives_a_rewrite() -> None:
    payload = body(b"\x00\x00\x00\x01\x01\x02\x04\xff\xfe\x02v")
    (record,) = read(payload, 1)
    assert payload == encode_record(
        record.key, record.value, record.headers, offset_delta=0, timestamp_delta=0
    )


def test_any_negative_length_is_null_as_in_java() -> None:
    (record,) = read(body(b"\x00\x00\x00\x03\x05\x00"), 1)
    assert (record.key, record.value) == (None, None)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00",
        b"\x01",
        b"\x80",
        body(b""),
        body(b"\x00"),
        body(b"\x00\x00\x00\x01\x01"),
        body(b"\x00\x00\x00\x02"),
        body(b"\x00\x00\x00\x02k\x04v\x00"),
        body(b"\x00\x00\x00\x01\x01\x01"),
        body(b"\x00\x00\x00\x01\x01\x04\x02h\x01"),
        body(b"\x00\x00\x00\x01\x01\x02\x01\x01"),
        body(b"\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f"),
        body(b"\x00\x00\x00\x01\x01\x00\x00"),
        body(b"\x00" + b"\xff" * 12),
        varint(100) + b"\x00\x00\x00\x01\x01\x00",
        varint(-5) + b"\x00\x00\x00\x01\x01\x00",
    ],
)
def test_a_record_that_contradicts_itself_is_refused(payload: bytes) -> None:
    refused(payload, 1)
    # Bytes after the record must not be read.
    refused(payload + bytes(50), 1)


def test_count_and_payload_must_agree() -> None:
    encoded = encode_record(b"k", b"v", (), offset_delta=0, timestamp_delta=0)
    assert "bytes follow" in refused(encoded + encoded, 1)
    assert "cut off" in refused(encoded, 2)
    assert "declares -1 records" in refused(encoded, -1)
    assert read(b"", 0) == []


def test_the_records_before_the_bad_one_are_yielded() -> None:
    encoded = encode_record(b"k", b"v", (), offset_delta=0, timestamp_delta=0)
    walk = read_records(
        encoded + b"\xff", count=2, base_offset=0, base_timestamp=0, append_time=None
    )
    assert next(walk).key == b"k"
    with pytest.raises(KafkaError):
        next(walk)
