"""Batches that a leader refuses, compared case by case with Apache Kafka 4.3.1."""

from __future__ import annotations

import struct

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import (
    batch_crc,
    build_batch,
    iterate_records,
    read_batch_header,
    write_crc,
)
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.record import Record
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.log.validation.batch_shape import RefusedBatchError
from wirebroker.storage.log.validation.batch_validation import BatchValidator

NOW = 1_700_000_000_000
HOUR_MS = 3_600_000


def make(count=1, **batch_fields):
    batch_fields.setdefault("timestamp_ms", NOW)
    return build_batch([(b"k", b"v%d" % index, ()) for index in range(count)], **batch_fields)


def edit(batch, layout, position, value, *, with_crc=True):
    batch = bytearray(batch)
    struct.pack_into(layout, batch, position, value)
    if with_crc:
        write_crc(batch, 0)
    return batch


def validate(batch, *, version=13, **settings):
    validator = BatchValidator(TopicSettings(**settings), directory="data/orders-0")
    return validator.validate(memoryview(bytearray(batch)), now_ms=NOW, request_version=version)


def refused(batch, **settings):
    with pytest.raises(KafkaError) as caught:
        validate(batch, **settings)
    return caught.value


def test_valid_batch_is_stored_unchanged():
    batch = make(3, codec=Codec.LZ4)
    records, header = validate(batch)
    assert records.tobytes() == batch
    assert header == read_batch_header(batch)


GOOD = make()
SHAPES = {
    "nothing": (b"", ErrorCode.INVALID_RECORD),
    "no length": (GOOD[:10], ErrorCode.INVALID_RECORD),
    "no magic": (GOOD[:15], ErrorCode.INVALID_RECORD),
    "half a header": (GOOD[:40], ErrorCode.INVALID_RECORD),
    "half a batch": (GOOD[:-1], ErrorCode.INVALID_RECORD),
    "two batches": (GOOD + GOOD, ErrorCode.INVALID_RECORD),
    "zeros behind": (GOOD + bytes(12), ErrorCode.CORRUPT_MESSAGE),
    "bad magic behind": (GOOD + edit(GOOD, ">b", 16, 3)[:20], ErrorCode.CORRUPT_MESSAGE),
    "magic 0": (edit(GOOD, ">b", 16, 0), ErrorCode.INVALID_RECORD),
    "magic 1": (edit(GOOD, ">b", 16, 1), ErrorCode.INVALID_RECORD),
    "half of magic 1": (edit(GOOD, ">b", 16, 1)[:20], ErrorCode.INVALID_RECORD),
    "magic 3": (edit(GOOD, ">b", 16, 3), ErrorCode.CORRUPT_MESSAGE),
    "length 5": (edit(GOOD, ">i", 8, 5, with_crc=False), ErrorCode.CORRUPT_MESSAGE),
    "length 20": (edit(GOOD, ">i", 8, 20, with_crc=False), ErrorCode.CORRUPT_MESSAGE),
    "length 48": (edit(GOOD, ">i", 8, 48, with_crc=False), ErrorCode.CORRUPT_MESSAGE),
    "negative length": (edit(GOOD, ">i", 8, -1, with_crc=False), ErrorCode.CORRUPT_MESSAGE),
}


@pytest.mark.parametrize(("batch", "code"), SHAPES.values(), ids=SHAPES.keys())
def test_a_request_without_exactly_one_whole_batch_is_refused(batch, code):
    error = refused(batch)
    assert error.code is code
    assert isinstance(error, RefusedBatchError)
    assert error.is_request_fault


@pytest.mark.parametrize("rest", [bytes(5), bytes(11), GOOD[:30], GOOD[:12], GOOD[:-1]])
def test_the_start_of_a_second_batch_is_dropped(rest):
    assert validate(GOOD + rest)[0].tobytes() == GOOD


FIELDS = {
    "base offset": (edit(GOOD, ">q", 0, 5), ErrorCode.INVALID_RECORD),
    "crc": (edit(GOOD, ">I", 17, 5, with_crc=False), ErrorCode.CORRUPT_MESSAGE),
    "payload": (GOOD[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
    "codec 5": (edit(GOOD, ">h", 21, 5), ErrorCode.UNKNOWN_SERVER_ERROR),
    "codec 7": (edit(GOOD, ">h", 21, 7), ErrorCode.UNKNOWN_SERVER_ERROR),
    "negative last offset delta": (edit(GOOD, ">i", 23, -1), ErrorCode.INVALID_RECORD),
    "larger last offset delta": (edit(GOOD, ">i", 23, 4), ErrorCode.INVALID_RECORD),
    "no records": (edit(GOOD, ">i", 57, 0), ErrorCode.INVALID_RECORD),
    "negative count": (edit(GOOD, ">i", 57, -1), ErrorCode.INVALID_RECORD),
    "larger count": (edit(GOOD, ">i", 57, 2), ErrorCode.INVALID_RECORD),
    "control batch": (make(is_control=True), ErrorCode.INVALID_RECORD),
    "no sequence": (make(producer_id=9, producer_epoch=0), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize(("batch", "code"), FIELDS.values(), ids=FIELDS.keys())
def test_a_batch_that_contradicts_itself_is_refused(batch, code):
    error = refused(batch)
    assert error.code is code
    assert isinstance(error, RefusedBatchError)
    assert not error.is_request_fault


def test_any_negative_producer_id_is_none():
    validate(make(producer_id=-5, producer_epoch=0, base_sequence=3))


def test_attribute_bits_without_meaning_are_let_through():
    validate(edit(GOOD, ">h", 21, 0x80))


def test_zstd_needs_produce_7():
    batch = make(codec=Codec.ZSTD)
    assert refused(batch, version=6).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    validate(batch, version=7)


def test_a_batch_above_max_message_bytes_is_too_large():
    size = len(GOOD)
    validate(GOOD, max_message_bytes=size)
    assert refused(GOOD, max_message_bytes=size - 1).code is ErrorCode.MESSAGE_TOO_LARGE


def test_records_too_far_in_the_future_are_named():
    batch = build_batch(
        [Record(0, NOW, None, b"", ()), Record(1, NOW + HOUR_MS + 1, None, b"", ())]
    )
    error = refused(batch)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in error.record_errors] == [1]


def test_records_too_far_in_the_past_are_named():
    batch = build_batch([Record(0, NOW - 1001, None, b"", ()), Record(1, NOW, None, b"", ())])
    error = refused(batch, message_timestamp_before_max_ms=1000)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in error.record_errors] == [0]
    validate(batch, message_timestamp_before_max_ms=1001)


def test_records_without_a_timestamp_are_never_too_old():
    validate(make(timestamp_ms=-1), message_timestamp_before_max_ms=1000)


@pytest.mark.parametrize("claimed", [NOW + 99 * HOUR_MS, NOW + 1, NOW - 1, -1])
@pytest.mark.parametrize("codec", list(Codec))
def test_a_false_max_timestamp_is_corrected(claimed, codec):
    records, header = validate(edit(make(2, codec=codec), ">q", 35, claimed))
    assert header.max_timestamp == NOW
    assert batch_crc(records, 0, len(records)) == header.crc


def test_a_compacted_topic_names_the_records_without_keys():
    batch = build_batch(
        [(b"k", b"", ()), (None, b"", ()), (None, b"", ())], timestamp_ms=NOW, codec=Codec.GZIP
    )
    error = refused(batch, cleanup_policy=("compact",))
    assert error.code is ErrorCode.INVALID_RECORD
    assert [record.batch_index for record in error.record_errors] == [1, 2]


def test_a_bad_timestamp_outweighs_a_missing_key():
    batch = build_batch([(b"k", b"", ()), (None, b"", ())], timestamp_ms=NOW + 10 * HOUR_MS)
    error = refused(batch, cleanup_policy=("compact",))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in error.record_errors] == [0, 1]


def test_a_compacted_topic_takes_records_with_keys():
    batch = make(3)
    assert validate(batch, cleanup_policy=("compact",))[0].tobytes() == batch


def test_log_append_time_stamps_the_header():
    records, header = validate(make(2, timestamp_ms=5), message_timestamp_type="LogAppendTime")
    assert header.uses_log_append_time
    assert header.max_timestamp == NOW
    assert batch_crc(records, 0, len(records)) == header.crc
    stamps = [record.timestamp for record in iterate_records(records, header)]
    assert stamps == [NOW, NOW]


def test_only_log_append_time_stamp_clears_unknown_attributes():
    batch = edit(make(2), ">H", 21, 0xC080)
    records, header = validate(batch, message_timestamp_type="LogAppendTime")
    assert header.attributes == 0x08
    assert batch_crc(records, 0, len(records)) == header.crc
    assert validate(batch)[0].tobytes() == batch


def test_a_producer_must_not_claim_log_append_time():
    error = refused(edit(make(2), ">h", 21, 8), message_timestamp_type="LogAppendTime")
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in error.record_errors] == [0, 1]


def test_log_append_time_bit_is_cleared_on_create_time_topic():
    records, header = validate(edit(make(2), ">h", 21, 8))
    assert not header.uses_log_append_time
    assert header.max_timestamp == NOW
    assert batch_crc(records, 0, len(records)) == header.crc


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("count", [3, 5, 1000, (1 << 31) - 1])
def test_more_and_fewer_records_than_declared_are_refused(codec, count):
    claimed = edit(make(4, codec=codec), ">i", 57, count)
    claimed = edit(claimed, ">i", 23, count - 1)
    error = refused(claimed)
    assert error.code is ErrorCode.INVALID_RECORD
    assert not error.record_errors


def test_the_smallest_records_fit():
    batch = build_batch([(None, None, ())] * 50, timestamp_ms=NOW)
    assert validate(batch)[1].record_count == 50
