"""Records of a client's batch: decompression bombs, bounds, and recompression."""

from __future__ import annotations

import gzip
import subprocess
import sys
import textwrap

import cramjam
import pytest
import zstandard

from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.transcripts.raw_records import batch_of, record
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress
from wirebroker.codecs.records.decompression_limits import MAX_DECOMPRESSED_BYTES
from wirebroker.codecs.records.walk import IS_QUICK, MAX_REFUSED
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.log.validation.batch_shape import RefusedBatchError
from wirebroker.storage.log.validation.batch_validation import BatchValidator
from wirebroker.storage.log.validation.record_validation import BRIEF_BYTES
from wirebroker.storage.long_work import TakesLongError

MIB = 1 << 20


def validate(data, *, walks_all=True, is_brief=False, walked=None, **settings):
    validator = BatchValidator(
        TopicSettings(**settings), directory="data/orders-0", walks_all=walks_all
    )
    return validator.validate(
        memoryview(bytearray(data)),
        now_ms=TIMESTAMP_MS,
        request_version=13,
        is_brief=is_brief,
        walked=walked,
    )


def refused(data, **settings):
    with pytest.raises(RefusedBatchError) as caught:
        validate(data, **settings)
    return caught.value


def bomb(codec, size):
    """Return a batch of one record whose value is this many zeros."""
    return batch(bytes(size), codec=codec)


PACKED = pytest.mark.parametrize("codec", [each for each in Codec if each is not Codec.NONE])


@PACKED
def test_default_client_batches_are_checked_quickly(codec):
    data = bomb(codec, MIB)
    assert validate(data, is_brief=True)[0].tobytes() == data


@PACKED
def test_highly_compressed_batch_is_checked_slowly(codec):
    data = bomb(codec, BRIEF_BYTES)
    with pytest.raises(TakesLongError):
        validate(data, is_brief=True)
    assert validate(data)[0].tobytes() == data


@pytest.mark.skipif(IS_QUICK, reason="the walk in C takes a millisecond for any of these")
@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("record_count", [1, 100])
def test_very_many_headers_take_long_where_the_walk_is_python_s(codec, record_count):
    headers = [("", None)] * (50_000 // record_count)
    records = [record(offset=number, headers=headers) for number in range(record_count)]
    data = batch_of(*records, codec=codec.name, base_timestamp=TIMESTAMP_MS)
    with pytest.raises(TakesLongError):
        validate(data, is_brief=True)
    assert validate(data)[0].tobytes() == data


@PACKED
def test_earlier_check_of_the_records_is_trusted(codec):
    data = bytearray(bomb(codec, BRIEF_BYTES))
    validator = BatchValidator(TopicSettings(), directory="data/orders-0")
    walked = in_one_go(validator.walk(memoryview(data), TIMESTAMP_MS))
    assert walked is not None
    assert walked.fault is None
    assert walked.unpacked_bytes > BRIEF_BYTES
    assert validate(data, is_brief=True, walked=walked)[0].tobytes() == data
    walked = walked._replace(fault=RefusedBatchError(ErrorCode.INVALID_RECORD, "it is bad"))
    assert refused(data, walked=walked).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("damage", [b"", b"\0" * 70, batch(b"a")[:-1] + b"!"])
def test_malformed_batch_is_left_to_the_validation(damage):
    validator = BatchValidator(TopicSettings(), directory="data/orders-0")
    walked = in_one_go(validator.walk(memoryview(damage), TIMESTAMP_MS))
    assert refused(damage, walked=walked).code in {
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
    }


@pytest.mark.parametrize("codec", ["GZIP", "LZ4", "ZSTD", "SNAPPY"])
def test_batch_unpacking_beyond_the_limit_is_too_large(codec):
    if codec == "SNAPPY":
        packed = bytes(cramjam.snappy.compress_raw(bytes(49 * MIB)))
    else:
        packed = compress(Codec[codec], bytes(MAX_DECOMPRESSED_BYTES + 1))
    # A record of this many zeros; otherwise the walk would end earlier.
    data = batch_of(codec=codec, packed=with_record(codec, packed), count=1)
    assert refused(data).code is ErrorCode.MESSAGE_TOO_LARGE


@PACKED
@pytest.mark.parametrize("is_brief", [False, True])
def test_a_record_of_a_compressed_batch_has_a_bound(codec, is_brief):
    """As observed from Apache Kafka 4.4.0: the bytes after a record's length count."""
    bound = {"max_decompressed_message_bytes": 1000, "is_brief": is_brief}
    validate(batch(bytes(993), key=None, codec=codec), **bound)
    for size in (994, 5000):
        error = refused(batch(b"x", bytes(size), key=None, codec=codec), **bound)
        assert error.code is ErrorCode.INVALID_RECORD
        assert "max.decompressed.message.bytes" in str(error)
        assert not error.record_errors
    validate(batch(bytes(5000)), **bound)


def with_record(codec, packed):
    """Return data that unpacks to a record's beginning followed by the unpacked input."""
    head = record("", value_length=(1 << 31) - 100, length=(1 << 31) - 9)[:-1]
    if codec == "SNAPPY":
        return packed
    if codec == "LZ4":
        return compress(Codec.LZ4, head + bytes(MAX_DECOMPRESSED_BYTES + 1))
    return compress(Codec[codec], head) + packed


def test_a_zstd_frame_that_is_cut_off_behind_its_records_does_not_unpack():
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    packed = compressor.compress(record("a"))
    assert validate(batch_of(codec="zstd", packed=packed, count=1))
    for cut in range(1, 5):
        data = batch_of(codec="zstd", packed=packed[:-cut], count=1)
        assert refused(data).code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_zstd_window_beyond_the_memory_is_refused():
    for window_log, size, code in ((27, MIB, None), (27, 49 * MIB, 10), (28, 5, -1)):
        parameters = zstandard.ZstdCompressionParameters(window_log=window_log)
        packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        packed = packer.compress(record("x" * size)) + packer.flush()
        data = batch_of(codec="zstd", packed=packed, count=1)
        if code is None:
            validate(data)
        else:
            assert refused(data).code == code


def test_very_many_blocks_do_not_unpack():
    blocks = b"".join(
        len(block).to_bytes(4, "big") + block
        for block in [bytes(cramjam.snappy.compress_raw(b""))] * 9000
    )
    packed = compress(Codec.SNAPPY, b"") + blocks
    data = batch_of(codec="snappy", packed=packed, count=1)
    assert refused(data).code is ErrorCode.UNKNOWN_SERVER_ERROR
    packed = gzip.compress(b"") * 30 + gzip.compress(record("a"))
    data = batch_of(codec="gzip", packed=packed, count=1)
    assert refused(data).code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("codec", list(Codec))
def test_the_first_of_very_many_refused_records_are_named(codec):
    count = MAX_REFUSED + 5
    data = batch(*[b""] * count, codec=codec, key=None)
    error = refused(data, cleanup_policy=("compact",))
    assert error.code is ErrorCode.INVALID_RECORD
    assert [record_error.batch_index for record_error in error.record_errors] == list(
        range(MAX_REFUSED)
    )
    reason = "Compacted topic cannot accept message without key in topic partition orders-0"
    shown_errors = ", ".join(
        f"RecordError(batchIndex={index}, message='{reason}')" for index in range(3)
    )
    assert error.message == (
        f"One or more records have been rejected due to {count} record errors in total, and only"
        f" showing the first three errors at most: [{shown_errors}]"
    )
    stamped = batch_of(*[record(None, offset=offset) for offset in range(count)], attributes=8)
    error = refused(stamped, message_timestamp_type="LogAppendTime")
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert len(error.record_errors) == MAX_REFUSED


@pytest.mark.parametrize("codec", list(Codec))
def test_each_record_s_timestamp_counts_not_the_header_s(codec):
    late = record("b", offset=1, time=4_000_000)
    data = batch_of(record("a"), late, codec=codec.name)
    error = refused(data)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [record_error.batch_index for record_error in error.record_errors] == [1]
    early = record("b", offset=1, time=-2000)
    data = batch_of(record("a"), early, codec=codec.name)
    validate(data)
    error = refused(data, message_timestamp_before_max_ms=1000)
    assert [record_error.batch_index for record_error in error.record_errors] == [1]


GARBAGE = batch_of(codec="gzip", packed=b"x" * 20, count=1)


def test_records_of_trusted_producers_are_not_inspected():
    for data in (GARBAGE, batch_of(record("a", longer=1)), batch_of(record("a"), max_timestamp=0)):
        assert validate(data, walks_all=False)[0].tobytes() == data


def test_records_of_trusted_producers_are_inspected_if_required():
    for settings in ({"cleanup_policy": ("compact",)}, {"compression_type": "lz4"}):
        error = refused(GARBAGE, walks_all=False, **settings)
        assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    data = batch_of(record("a"), max_timestamp=TIMESTAMP_MS + 99 * 3_600_000)
    _, header = validate(data, walks_all=False)
    assert header.max_timestamp == TIMESTAMP_MS


RECOMPRESSION = textwrap.dedent(
    """
    import resource, sys
    from tests.support.records.batches import TIMESTAMP_MS
    from tests.transcripts.raw_records import record, batch_of
    from wirebroker.codecs.records.codec import Codec
    from wirebroker.codecs.records.compression import compress
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.validation.batch_shape import RefusedBatchError
    from wirebroker.storage.log.validation.batch_validation import BatchValidator
    source, target, name = sys.argv[1:]
    with open(name, "rb") as file:
        data = bytearray(file.read())
    small = batch_of(record("a"), codec=source)
    validator = BatchValidator(TopicSettings(compression_type=target), directory="data/orders-0")
    def validate(data):
        try:
            validator.validate(memoryview(data), now_ms=TIMESTAMP_MS, request_version=13)
        except RefusedBatchError as error:
            print("refused", int(error.code))
    validate(bytearray(small))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    validate(data)
    print("KiB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
)


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", ["gzip", "zstd"])
def test_recompression_takes_bounded_memory(tmp_path, source, target):
    """A request of about 100 KiB that unpacks to 100 MiB, in a separate process."""
    if source == target:
        target = "snappy"
    count = 100
    records = [record("x" * MIB, offset=index) for index in range(count)]
    file = tmp_path / "batch"
    file.write_bytes(batch_of(*records, codec=source))
    done = subprocess.run(
        [sys.executable, "-c", RECOMPRESSION, source, target, str(file)],
        check=True,
        capture_output=True,
        text=True,
    )
    *answers, last = done.stdout.splitlines()
    # 100 MiB of zeros exceed max.message.bytes in these two
    assert answers == (["refused 10"] if target in {"uncompressed", "snappy"} else [])
    assert last.startswith("KiB ")
    assert int(last.split()[1]) < 64 * 1024


def test_records_pass_unchanged_from_codec_to_codec():
    data = batch(*[b"value %d" % index for index in range(500)], codec=Codec.SNAPPY)
    records, header = validate(data, compression_type="gzip")
    values = [record.value for record in iterate_records(records, header)]
    assert values == [b"value %d" % index for index in range(500)]
