"""Reads of a log: slices for Fetch, records by timestamp, epochs."""

from __future__ import annotations

import pytest

from tests.support.storage.time_search import offset_for_timestamp, offset_of_max_timestamp
from tests.unit.storage.log_kit import NOW, append, batch, read_all
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.record import Record
from wirebroker.storage.log import read as log_read


@pytest.mark.parametrize("offset", [-1, 6])
def test_reading_outside_of_the_log_is_out_of_range(open_log, offset):
    log = open_log()
    append(log, batch(5))
    with pytest.raises(KafkaError) as caught:
        log.read(offset, 100, up_to_offset=5)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_reading_at_the_end_finds_nothing(open_log):
    log = open_log()
    append(log, batch(5))
    assert log.read(5, 100, up_to_offset=5).slice is None


def test_reading_stops_at_the_given_bound(open_log):
    log = open_log(segment_bytes=200)
    for _ in range(6):
        append(log)
    size = len(batch())
    for bound in range(7):
        data = b""
        offset = 0
        while (piece := log.read(offset, 1 << 20, up_to_offset=bound).slice) is not None:
            data += piece.read()
            offset += piece.length // size
        assert len(data) == bound * size


def test_oversized_first_batch_is_returned_only_with_min_one(open_log):
    log = open_log()
    append(log, batch(3))
    append(log, batch(3))
    size = len(batch(3))
    assert log.read(0, size - 1, up_to_offset=6).slice is None
    file_slice = log.read(0, 1, up_to_offset=6, min_one=True).slice
    assert file_slice is not None
    assert file_slice.length == size
    cut = log.read(0, size + 10, up_to_offset=6).slice
    assert cut is not None
    assert cut.length == size + 10, "the second batch is cut, as in Kafka"


def test_the_last_batch_alone_that_does_not_fit_is_not_cut(open_log):
    log = open_log()
    append(log, batch(3))
    assert log.read(0, 20, up_to_offset=3).slice is None


def test_an_offset_inside_a_batch_gets_the_whole_batch(open_log):
    log = open_log()
    append(log, batch(3))
    append(log, batch(3))
    assert read_all(log, 4) == read_all(log)[len(batch(3)) :]


def test_records_are_found_by_timestamp_across_segments(open_log):
    log = open_log(segment_bytes=200, index_interval_bytes=0)
    for number in range(10):
        append(log, batch(timestamp_ms=NOW + 10 * number))
    log.leader_epochs.check()
    assert offset_for_timestamp(log, NOW - 1, up_to_offset=10) == (NOW, 0, 0)
    assert offset_for_timestamp(log, NOW + 41, up_to_offset=10) == (NOW + 50, 5, 0)
    assert offset_for_timestamp(log, NOW + 41, up_to_offset=5) is None
    assert offset_for_timestamp(log, NOW + 91, up_to_offset=10) is None
    assert offset_of_max_timestamp(log, up_to_offset=10) == (NOW + 90, 9, 0)
    assert offset_of_max_timestamp(log, up_to_offset=9) is None


def test_the_exact_record_is_found_inside_a_batch(open_log):
    log = open_log()
    records = [Record(index, NOW + index % 3, None, b"", ()) for index in range(6)]
    append(log, memoryview(build_batch(records)))
    assert offset_for_timestamp(log, NOW + 1, up_to_offset=6) == (NOW + 1, 1, 0)
    assert offset_of_max_timestamp(log, up_to_offset=6) == (NOW + 2, 2, 0)


def test_an_empty_log_has_no_timestamps(open_log):
    log = open_log()
    assert offset_for_timestamp(log, 0, up_to_offset=0) is None
    assert offset_of_max_timestamp(log, up_to_offset=0) is None
    assert log.earliest() == (0, None)


def test_epoch_end_offsets_are_returned_for_fencing(open_log):
    log = open_log()
    append(log, leader_epoch=1)
    append(log, leader_epoch=4)
    assert log.end_offset_for_epoch(1) == (1, 1)
    assert log.end_offset_for_epoch(4) == (4, 2)
    assert log.earliest() == (0, 1)


def test_reads_far_behind_the_end_mark_segments_as_old(open_log, monkeypatch):
    log = open_log(segment_bytes=200)
    for _ in range(30):
        append(log, batch(2))
    log.set_high_watermark(log.log_end_offset)
    assert len(log.segments) > 5
    monkeypatch.setattr(log_read, "FAR_BYTES", 2 * log.segments[0].size + log.segments.active.size)
    for segment in log.segments:
        assert log.read(segment.base_offset, 100, up_to_offset=60, min_one=True).slice is not None
    are_old = [segment.log.is_old for segment in log.segments]
    assert are_old == [True] * (len(are_old) - 3) + [False] * 3
