"""A topic's own compression.type, for every pair of codecs."""

from __future__ import annotations

import itertools

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
TYPES = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
RECORDS = [(b"k%d" % index, b"value " * 20, (("h", b"x"),)) for index in range(20)]


def validate(batch, **settings):
    validator = BatchValidator(TopicSettings(**settings), directory="data/orders-0")
    return validator.validate(memoryview(bytearray(batch)), now_ms=NOW, request_version=13)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(Codec, TYPES)))
def test_records_survive_a_change_of_codec(source, target):
    batch = build_batch(
        RECORDS,
        timestamp_ms=NOW,
        codec=source,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
    )
    records, header = validate(batch, compression_type=target)
    assert header.codec is TYPES[target]
    assert header == read_batch_header(records)
    assert header.size == len(records)
    assert batch_crc(records, 0, len(records)) == header.crc
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 3)
    contents = [record[2:] for record in iterate_records(records, header)]
    assert [(key, value, tuple(headers)) for key, value, headers in contents] == RECORDS
    if source is TYPES[target]:
        assert records.tobytes() == batch


def test_the_result_counts_against_max_message_bytes():
    batch = build_batch(RECORDS, timestamp_ms=NOW, codec=Codec.ZSTD)
    with pytest.raises(KafkaError) as caught:
        validate(batch, compression_type="uncompressed", max_message_bytes=len(batch) + 10)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_log_append_time_and_a_codec_go_together():
    batch = build_batch(RECORDS, timestamp_ms=5)
    _, header = validate(batch, compression_type="lz4", message_timestamp_type="LogAppendTime")
    assert header.codec is Codec.LZ4
    assert header.uses_log_append_time
    assert header.max_timestamp == NOW


def test_offsets_inside_that_have_gaps_are_refused():
    batch = build_batch([Record(0, NOW, b"a", b"", ()), Record(1, NOW, b"b", b"", ())])
    # Set the second record's offset delta (varint 2) to 2, as a broken client might.
    position = batch.index(b"\x00\x00\x02\x02b")
    batch[position + 2] = 4
    write_crc(batch, 0)
    assert [r.offset for r in iterate_records(batch, read_batch_header(batch))] == [0, 2]
    with pytest.raises(KafkaError) as caught:
        validate(batch, compression_type="gzip")
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_records_that_do_not_fit_their_batch_are_refused():
    batch = build_batch(RECORDS, timestamp_ms=NOW)
    batch[61:64] = b"\xff\xff\xff"
    write_crc(batch, 0)
    with pytest.raises(KafkaError) as caught:
        validate(batch, compression_type="lz4")
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("producer", "is_refused"),
    [((-1, -1, -1), False), ((-2, -1, -1), True), ((-2, 0, -1), True), ((-2, 0, 0), False)],
)
def test_producer_without_epoch_or_sequence_is_not_recompressed(producer, is_refused):
    producer_id, epoch, sequence = producer
    batch = build_batch(
        RECORDS,
        timestamp_ms=NOW,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    validate(batch)
    if not is_refused:
        validate(batch, compression_type="gzip")
        return
    with pytest.raises(KafkaError) as caught:
        validate(batch, compression_type="gzip")
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def dated(*timestamps: int, key: bytes | None = b"k", codec: Codec = Codec.NONE) -> bytearray:
    records = [
        Record(index, timestamp, key, b"v", ()) for index, timestamp in enumerate(timestamps)
    ]
    return build_batch(records, codec=codec)


# As observed from Apache Kafka 4.3.1.
@pytest.mark.parametrize("kept", [{}, {"message_timestamp_type": "LogAppendTime"}])
@pytest.mark.parametrize("timestamps", [(-2,), (NOW, -5), (-5, NOW), (-(1 << 62),)])
def test_timestamp_below_minus_one_is_not_recompressed(timestamps, kept):
    with pytest.raises(KafkaError) as caught:
        validate(dated(*timestamps), compression_type="gzip", **kept)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    validate(dated(*timestamps), **kept)
    validate(dated(*timestamps, codec=Codec.GZIP), compression_type="gzip", **kept)


def test_timestamp_of_minus_one_is_recompressed():
    _, header = validate(dated(-1, NOW), compression_type="gzip")
    assert header.codec is Codec.GZIP


def test_single_records_are_refused_before_times_below_minus_one():
    bounds = {"message_timestamp_before_max_ms": 2 * NOW}
    with pytest.raises(RefusedBatchError) as caught:
        validate(dated(-5, -3 * NOW), compression_type="gzip", **bounds)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [record_error.batch_index for record_error in caught.value.record_errors] == [1]
    batch = build_batch([Record(0, -5, b"k", b"", ()), Record(1, NOW, None, b"", ())])
    with pytest.raises(RefusedBatchError) as caught:
        validate(batch, compression_type="gzip", cleanup_policy="compact")
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [record_error.batch_index for record_error in caught.value.record_errors] == [1]
