"""The walk over keys and values agrees with the validating walkers."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.coordinator_batches import KeyValueWalk
from wirebroker.codecs.records.record import Record

RECORD = st.tuples(
    st.one_of(st.none(), st.binary(max_size=200)),
    st.one_of(st.none(), st.binary(max_size=200)),
    st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3)), max_size=2),
)


def no_end(producer_id, is_commit):
    raise AssertionError(f"no transaction ends: {producer_id, is_commit}")


def batches(*contents, codec=Codec.NONE):
    data, offset = b"", 0
    for records in contents:
        data += build_batch(records, base_offset=offset, timestamp_ms=1_000, codec=codec)
        offset += len(records)
    return data, offset


@given(st.lists(st.lists(RECORD, min_size=1, max_size=5), max_size=5), st.sampled_from(Codec))
def test_all_records_with_keys_are_found(contents, codec):
    data, end = batches(*contents, codec=codec)
    walk = KeyValueWalk(data, 0, no_end)
    assert list(walk) == [(k, v) for records in contents for k, v, _ in records if k is not None]
    assert walk.next_offset == end


def test_multi_byte_timestamps_and_offsets_are_skipped():
    records = [Record(0, 0, b"a", b"1"), Record(500_000, 1 << 50, b"b", b"x" * 70_000)]
    walk = KeyValueWalk(bytes(build_batch(records)), 0, no_end)
    assert list(walk) == [(b"a", b"1"), (b"b", b"x" * 70_000)]
    assert walk.next_offset == 500_001


def test_truncated_batch_is_not_read():
    data, _ = batches([(b"a", b"1", ())], [(b"b", b"2", ())])
    walk = KeyValueWalk(data[:-1], 0, no_end)
    assert list(walk) == [(b"a", b"1")]
    assert walk.next_offset == 1


def test_records_before_the_start_are_left_out():
    data, _ = batches([(b"a", b"1", ()), (b"b", b"2", ())])
    assert list(KeyValueWalk(data, 1, no_end)) == [(b"b", b"2")]


def test_control_records_are_left_out():
    data = bytes(build_batch([(b"\x00\x00\x00\x01", b"", ())], is_control=True))
    walk = KeyValueWalk(data, 0, lambda *_: None)
    assert list(walk) == []
    assert walk.next_offset == 1


@given(st.integers(61, 75), st.integers(0, 255))
def test_inconsistent_bytes_are_refused_or_read(position, byte):
    data = bytearray(batches([(b"key", b"value", ())])[0])
    if position < len(data):
        data[position] = byte
    with contextlib.suppress(KafkaError):
        for key, value, *_ in KeyValueWalk(bytes(data), 0, no_end):
            assert len(key) <= 20
            assert value is None or len(value) <= 20


def test_a_length_below_a_header_is_refused():
    data = bytearray(batches([(b"key", b"value", ())])[0])
    data[8:12] = (40).to_bytes(4)
    with pytest.raises(KafkaError):
        list(KeyValueWalk(bytes(data), 0, no_end))


def transactional(*records, producer_id=1):
    return bytes(
        build_batch(
            list(records),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    )


def marker(kind, producer_id=1):
    key = b"\x00\x00" + kind.to_bytes(2)
    return bytes(
        build_batch(
            [(key, b"\x00\x00\x00\x00\x00\x00", ())],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )


A, B = (b"a", b"1", ()), (b"b", b"2", ())


def walked(*batches):
    entries: list[tuple] = []
    walk = KeyValueWalk(b"".join(batches), 0, lambda *ended: entries.append(ended))
    entries.extend(walk)
    return entries


def test_transaction_records_carry_producer_and_end_in_order():
    plain = bytes(build_batch([(b"c", b"3", ())]))
    assert walked(transactional(A), marker(1), transactional(B), plain, marker(0)) == [
        (b"a", b"1", 1),
        (1, True),
        (b"b", b"2", 1),
        (b"c", b"3"),
        (1, False),
    ]
