from __future__ import annotations

from tests.support.records.batches import batch, records_in
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.coordinator.share_partitions.record_state import InFlightState, RecordState
from wirebroker.coordinator.share_partitions.state_change import DeadRecords
from wirebroker.share.dead_letter_records import (
    DeadRecord,
    Origin,
    dead_letter_batch,
    each_record,
    originals_in,
)

ORIGIN = Origin("gruppe-ü", "t", 3)
RECORDS = [DeadRecord(offset, 5, "why") for offset in range(10, 20)]


def test_each_offset_of_a_range_is_a_dead_letter():
    state = InFlightState(4, 6, RecordState.ARCHIVING, 2)
    dead = [DeadRecords(state, "why"), DeadRecords(InFlightState(9, 9, state.state, 1), "other")]
    assert list(each_record(dead)) == [
        DeadRecord(4, 2, "why"),
        DeadRecord(5, 2, "why"),
        DeadRecord(6, 2, "why"),
        DeadRecord(9, 1, "other"),
    ]


def test_headers_describe_the_record():
    built, count = dead_letter_batch(ORIGIN, RECORDS[:2], {10: (b"k", b"v")}, 77, 10_000)
    assert count == 2
    (_, first), (_, second) = records_in(bytes(built))
    assert (first.key, first.value, first.timestamp) == (b"k", b"v", 77)
    assert (second.key, second.value) == (None, None)
    assert list(first.headers) == [
        ("__dlq.errors.topic", b"t"),
        ("__dlq.errors.partition", b"3"),
        ("__dlq.errors.offset", b"10"),
        ("__dlq.errors.group", "gruppe-ü".encode()),
        ("__dlq.errors.delivery.count", b"5"),
        ("__dlq.errors.message", b"why"),
    ]


def test_batch_has_at_most_the_wanted_bytes():
    built, count = dead_letter_batch(ORIGIN, RECORDS, {}, 0, 1_000)
    assert 1 < count < len(RECORDS)
    assert len(built) <= 1_000
    _, count = dead_letter_batch(ORIGIN, RECORDS, {}, 0, 10)
    assert count == 1


def test_originals_are_found_by_offset():
    data = batch(b"a", b"b", b"c") + batch(b"d", b"e", codec=Codec.GZIP, base_offset=0)
    second = bytearray(data)
    found = originals_in(bytes(second[: len(batch(b"a", b"b", b"c"))]), 1, 9, 10_000)
    assert found.records == {1: (b"k", b"b"), 2: (b"k", b"c")}
    assert found.last_offset == 2


def test_originals_stop_at_the_limit():
    data = batch(b"a" * 100, b"b" * 100, b"c" * 100)
    found = originals_in(data, 0, 2, 10_000)
    assert len(found.records) == 3
    limited = originals_in(data, 0, 2, 210)
    assert (sorted(limited.records), limited.last_offset) == ([0, 1], 1)


def test_batch_that_is_too_large_when_decompressed_is_left_out():
    data = batch(b"a" * 100_000, codec=Codec.GZIP)
    found = originals_in(data, 0, 0, 1_000)
    assert (found.records, found.last_offset) == ({}, 0)


def test_part_of_a_batch_is_ignored():
    data = bytes(build_batch([(b"k", b"v", ())])) + batch(b"x")[:-1]
    found = originals_in(data, 0, 5, 1_000)
    assert (found.records, found.last_offset) == ({0: (b"k", b"v")}, 0)
