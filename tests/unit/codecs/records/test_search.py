"""Searches by timestamp and offset in truncated and damaged records."""

from __future__ import annotations

import random

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch, read_batch_header
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress, unpack
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.codecs.records.record import Record
from wirebroker.codecs.records.search import RecordSearch

TIMES = [500, 100, 700, 700, 300, 900]


def make(*, log_append_time_ms: int | None = None, value_bytes: int = 30):
    rng = random.Random(3)
    records = [
        Record(10 + 2 * number, time, None, b"v" * rng.randrange(value_bytes), [])
        for number, time in enumerate(TIMES)
    ]
    batch = build_batch(records, base_offset=10, log_append_time_ms=log_append_time_ms)
    return read_batch_header(batch), bytes(batch[HEADER_BYTES:])


def search_in(header, pieces, timestamp, start_offset=0):
    search = RecordSearch(header, timestamp, start_offset)
    for piece in pieces:
        for _ in search.walk(piece):
            assert len(search._rest) < 100, "no more than a head is kept"
        if search.found is not None:
            return search.found
    list(search.walk(b"", is_last=True))
    return search.found


@pytest.mark.parametrize("piece_bytes", [1, 2, 7, 64, 10_000])
@pytest.mark.parametrize("value_bytes", [2, 300, 40_000])
def test_every_record_is_found_whatever_the_chunk_boundaries(piece_bytes, value_bytes):
    header, payload = make(value_bytes=value_bytes)
    view = memoryview(payload)
    for timestamp, start_offset, expected in (
        (0, 0, (500, 10)),
        (501, 0, (700, 14)),
        (501, 15, (700, 16)),
        (0, 18, (300, 18)),
        (701, 0, (900, 20)),
        (901, 0, None),
        (0, 21, None),
    ):
        pieces = [view[i : i + piece_bytes] for i in range(0, len(view), piece_bytes)]
        assert search_in(header, pieces, timestamp, start_offset) == expected


def test_records_with_log_append_time_have_the_broker_timestamp():
    header, payload = make(log_append_time_ms=5_000)
    assert search_in(header, [payload], 4_000, 11) == (5_000, 12)
    assert search_in(header, [payload], 5_001) is None


def test_skipped_bytes_need_not_be_read():
    header, payload = make(value_bytes=40_000)
    search = RecordSearch(header, 901, 0)
    position = read = 0
    while position < len(payload):
        piece = payload[position : position + 100]
        read += len(piece)
        list(search.walk(piece))
        position += len(piece) + search.skip_bytes
        search.skip_bytes = 0
    list(search.walk(b"", is_last=True))
    assert search.found is None
    assert read < len(payload) / 10


@pytest.mark.parametrize(
    "damage",
    [
        lambda payload: payload[:-10],  # it ends within a record
        lambda payload: payload[:5],
        lambda payload: b"\x01" + payload,  # a negative length
        lambda payload: b"\xff" * 40,
        lambda payload: b"",
    ],
)
def test_malformed_record_is_invalid(damage):
    header, payload = make(value_bytes=40)
    with pytest.raises(KafkaError) as caught:
        search_in(header, [damage(payload)], 10_000)
    assert caught.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Codec))
def test_unpacked_chunks_are_small_and_complete(codec):
    rng = random.Random(1)
    data = rng.randbytes(300_000) + bytes(2_000_000)
    pieces = [bytes(piece) for piece in unpack(codec, compress(codec, data), max_bytes=1 << 24)]
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 1 << 18


@pytest.mark.parametrize("codec", list(Codec))
def test_data_above_the_limit_is_refused_before_it_is_unpacked(codec):
    packed = compress(codec, bytes(2_000_000))
    with pytest.raises(KafkaError) as caught:
        sum(len(piece) for piece in unpack(codec, packed, max_bytes=1_000_000))
    assert caught.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("codec", "damage"),
    [
        (codec, damage)
        for codec in Codec
        for damage in (lambda data: data[:-30], lambda _data: b"garbage" * 10)
        # A truncated zstd stream yields what is there: its last record is the one that fails.
        if codec is not Codec.NONE and (codec is not Codec.ZSTD or damage(b"") != b"")
    ],
)
def test_damaged_data_is_corrupt(codec, damage):
    packed = damage(compress(codec, random.Random(2).randbytes(100_000)))
    with pytest.raises(KafkaError) as caught:
        list(unpack(codec, packed, max_bytes=1 << 24))
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
