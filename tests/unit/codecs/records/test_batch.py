"""Batches from a segment of Apache Kafka 4.3.1, and damaged ones."""

import struct

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import (
    BatchHeader,
    batch_crc,
    build_batch,
    iterate_batches,
    iterate_records,
    read_batch_header,
    set_base_offset_and_epoch,
    write_crc,
)
from wirebroker.codecs.records.checksum import crc32c
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.codecs.records.record import Record

# Java's idempotent console producer; two records with keys and headers (h1: v1, h2: ä and h3: "").
JAVA_NONE = bytes.fromhex(
    "0000000000000000000000980000000002410478aa000000000001000001a1fda9cedd000001a1fda9cee700000000"
    "0000001f00000000000000000002400000000a6b65792d311276616c7565206f6e650404683104763104683204c3a4"
    "88010014020a6b65792d326a76616c75652074776f2074776f2074776f2074776f2074776f2074776f2074776f2074"
    "776f2074776f2074776f2074776f2074776f0204683300"
)
JAVA_GZIP = bytes.fromhex(
    "00000000000000000000007b0000000002e437a921000100000001000001a1fda9d1f3000001a1fda9d1fa00000000"
    "00000020000000000000000000021f8b08000000000000ff73606060e0ca4eadd435142a4bcc294d55c8cf4b6561c9"
    "3064293364c9306239bca48391818f09acc2280ba2a2a43c9f14ccc49261cc0000baaa8bfd67000000"
)
JAVA_SNAPPY = bytes.fromhex(
    "00000000000000000000008200000000020843ad7b000200000001000001a1fda9d4b4000001a1fda9d4d200000000"
    "000000210000000000000000000282534e415050590000000001000000010000003d6798400000000a6b65792d3112"
    "76616c7565206f6e650404683104763104683204c3a48801003c020a012204326a09220874776fae0400100204683300"
)
JAVA_LZ4 = bytes.fromhex(
    "00000000000000000000007c000000000242b4f9be000300000001000001a1fda9d781000001a1fda9d79c00000000"
    "00000022000000000000000000020422"
    "4d186040823c000000f117400000000a6b65792d311276616c7565206f6e650404683104763104683204c3a488010036"
    "02220022326a22003f74776f04001950020468330000000000"
)
JAVA_ZSTD = bytes.fromhex(
    "0000000000000000000000790000000002a894fd57000400000001000001a1fda9daa7000001a1fda9daca00000000"
    "000000230000000000000000000228b52ffd0058e401000403400000000a6b65792d311276616c7565206f6e65040468"
    "3104763104683204c3a48801004602326a74776f02046833000300edcc00885d5af504010000"
)
JAVA = {
    Codec.NONE: JAVA_NONE,
    Codec.GZIP: JAVA_GZIP,
    Codec.SNAPPY: JAVA_SNAPPY,
    Codec.LZ4: JAVA_LZ4,
    Codec.ZSTD: JAVA_ZSTD,
}
LENGTH_POSITION = 8
MAGIC_POSITION = 16
ATTRIBUTES_POSITION = 21


def refused(batch: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        read_batch_header(batch)
    return caught.value.code


def changed(batch: bytes, position: int, layout: str, value: int) -> bytes:
    copy = bytearray(batch)
    struct.pack_into(layout, copy, position, value)
    return bytes(copy)


def test_crc32c_matches_castagnoli_check_value() -> None:
    # RFC 3720, B.4.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(memoryview(b"\xff" * 32)) == 0x62A8AB43
    assert crc32c(bytearray(b"123456789")) == 0xE3069283


def test_header_written_by_java_is_read() -> None:
    header = read_batch_header(JAVA_NONE)
    assert header == BatchHeader(
        base_offset=0,
        length=152,
        leader_epoch=0,
        magic=2,
        crc=0x410478AA,
        attributes=0,
        last_offset_delta=1,
        base_timestamp=1795257126621,
        max_timestamp=1795257126631,
        producer_id=31,
        producer_epoch=0,
        base_sequence=0,
        record_count=2,
    )
    assert header.size == len(JAVA_NONE) == 164
    assert header.last_offset == 1
    assert header.last_sequence == 1
    assert read_batch_header(memoryview(b"???" + JAVA_NONE), 3) == header


@pytest.mark.parametrize("codec", Codec)
def test_java_s_batches_of_every_codec_are_read(codec: Codec) -> None:
    batch = memoryview(JAVA[codec])
    header = read_batch_header(batch)
    assert header.codec is codec
    assert batch_crc(batch, 0, header.size) == header.crc
    first, second = iterate_records(batch, header, max_bytes=1000)
    assert first[2:] == (b"key-1", b"value one", [("h1", b"v1"), ("h2", "ä".encode())])
    assert second[2:] == (b"key-2", b"value" + b" two" * 12, [("h3", b"")])
    assert (first.offset, second.offset) == (0, 1)
    assert (first.timestamp, second.timestamp) == (header.base_timestamp, header.max_timestamp)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY, Codec.LZ4])
def test_same_records_encode_to_java_s_bytes(codec: Codec) -> None:
    batch = JAVA[codec]
    header = read_batch_header(batch)
    rebuilt = build_batch(
        list(iterate_records(batch, header)),
        leader_epoch=header.leader_epoch,
        codec=codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    assert rebuilt == batch


def test_flags() -> None:
    batch = build_batch([(None, None, ())], is_control=True, is_transactional=True)
    header = read_batch_header(batch)
    assert (header.is_control, header.is_transactional, header.uses_log_append_time) == (
        True,
        True,
        False,
    )
    assert header.codec is Codec.NONE
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.last_sequence == -1


def test_log_append_time_is_every_record_s_timestamp() -> None:
    batch = build_batch([(b"k", b"v", ())] * 2, timestamp_ms=5, log_append_time_ms=9)
    header = read_batch_header(batch)
    assert header.uses_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (5, 9)
    assert [record.timestamp for record in iterate_records(batch, header)] == [9, 9]


def test_records_keep_their_offsets_and_timestamps() -> None:
    records = [Record(12, 50, None, b"a"), Record(15, 40, None, b"b")]
    batch = build_batch(records, base_offset=10, leader_epoch=3)
    header = read_batch_header(batch)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (10, 15, 3)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (50, 50, 2)
    assert list(iterate_records(batch, header)) == records


def test_non_increasing_offsets_and_empty_batches_are_assertion_errors() -> None:
    with pytest.raises(AssertionError):
        build_batch([Record(5, 0, None, None), Record(5, 0, None, None)])
    with pytest.raises(AssertionError):
        build_batch([Record(5, 0, None, None)], base_offset=6)
    with pytest.raises(AssertionError):
        build_batch([])


def test_sequence_numbers_wrap_after_the_largest_int32() -> None:
    batch = build_batch([(None, None, ())] * 3, producer_id=1, base_sequence=2**31 - 2)
    assert read_batch_header(batch).last_sequence == 0


def test_the_leader_s_twelve_bytes_lie_outside_the_crc() -> None:
    batch = bytearray(b"??") + JAVA_NONE
    set_base_offset_and_epoch(batch, 2, 2**40, 7)
    header = read_batch_header(batch, 2)
    assert (header.base_offset, header.leader_epoch) == (2**40, 7)
    assert batch_crc(memoryview(batch), 2, header.size) == header.crc
    assert batch[2 + 16 :] == JAVA_NONE[16:]
    assert batch[2 + 8 : 2 + 12] == JAVA_NONE[8:12]


def test_a_new_crc_is_written_in_place() -> None:
    batch = bytearray(JAVA_NONE)
    batch[-1] ^= 1
    write_crc(batch, 0)
    header = read_batch_header(batch)
    assert header.crc == batch_crc(memoryview(batch), 0, header.size) != 0x410478AA


def test_batches_are_walked_until_the_end() -> None:
    data = JAVA_NONE + JAVA_ZSTD + JAVA_GZIP
    assert [(position, header.size) for position, header in iterate_batches(data)] == [
        (0, 164),
        (164, 133),
        (297, 135),
    ]
    assert list(iterate_batches(b"")) == []


@pytest.mark.parametrize("length", range(len(JAVA_ZSTD)))
def test_a_batch_that_is_cut_off_is_corrupt(length: int) -> None:
    walk = iterate_batches(JAVA_NONE + JAVA_ZSTD[:length])
    next(walk)
    if length:
        with pytest.raises(KafkaError) as caught:
            next(walk)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    else:
        assert list(walk) == []


@pytest.mark.parametrize("length", [-1, 0, 13, 48, -(2**31)])
def test_a_length_too_small_for_a_header_is_corrupt(length: int) -> None:
    assert refused(changed(JAVA_NONE, LENGTH_POSITION, ">i", length)) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_an_unknown_magic_is_corrupt(magic: int) -> None:
    assert refused(changed(JAVA_NONE, MAGIC_POSITION, ">b", magic)) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_recognized_however_short(magic: int) -> None:
    old = changed(JAVA_NONE, MAGIC_POSITION, ">b", magic)
    assert refused(old) is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    shortest = changed(old[:26], LENGTH_POSITION, ">i", 14)
    assert refused(shortest) is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize("number", [5, 6, 7])
def test_an_unknown_codec_is_corrupt(number: int) -> None:
    header = read_batch_header(changed(JAVA_NONE, ATTRIBUTES_POSITION, ">h", number))
    with pytest.raises(KafkaError) as caught:
        _ = header.codec
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_records_are_not_read_beyond_their_batch() -> None:
    header = read_batch_header(JAVA_NONE)
    assert len(list(iterate_records(JAVA_NONE + b"more", header))) == 2
    with pytest.raises(KafkaError):
        iterate_records(JAVA_NONE[:-1], header)


def test_data_that_decompresses_beyond_the_limit_is_refused() -> None:
    header = read_batch_header(JAVA_GZIP)
    with pytest.raises(KafkaError) as caught:
        iterate_records(JAVA_GZIP, header, max_bytes=102)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert len(list(iterate_records(JAVA_GZIP, header, max_bytes=103))) == 2


def test_batch_header_has_61_bytes() -> None:
    assert HEADER_BYTES == 61
    assert len(build_batch([(None, None, ())])) == 61 + 7
