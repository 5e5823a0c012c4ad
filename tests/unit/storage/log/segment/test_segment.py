"""One segment: appends, lookups, truncation; its indexes equal those of Apache Kafka."""

import errno
import os
from itertools import accumulate

import pytest

from tests.unit.storage.log.segment.segment_kit import (
    FIRST_TIMESTAMP,
    append,
    filled,
    make_batch,
    make_segment,
)
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.records.batch import (
    build_batch,
    read_batch_header,
    set_base_offset_and_epoch,
)
from wirebroker.codecs.records.record import Record
from wirebroker.storage.files import DataFile, Files
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.time_search import first_at_or_after, first_with_max_timestamp

RECORDED_BATCHES = [
    (1296, 3, 104, 2), (1588, 2, 304, 1), (1587, 2, 404, 1), (1570, 1, 304, 0),
    (696, 3, 323, 2), (1570, 1, 363, 0), (370, 1, 360, 0), (1570, 1, 310, 0),
    (970, 1, 350, 0), (970, 1, 350, 0), (95, 2, 397, 1), (3096, 3, 449, 2),
    (78, 1, 449, 0), (370, 1, 454, 0), (78, 1, 451, 0), (78, 1, 458, 0),
    (1570, 1, 558, 0), (78, 1, 558, 0), (404, 3, 565, 2), (370, 1, 519, 0),
    (1587, 2, 474, 1), (78, 1, 481, 0), (987, 2, 561, 1), (970, 1, 601, 0),
]  # fmt: skip
RECORDED_INDEX = "00000007000011770000000d000021e50000001500003c120000002100004e17"
RECORDED_TIME_INDEX = (
    "0000018bcfe56994000000060000018bcfe569c1000000140000018bcfe56a350000001d"
    "0000018bcfe56a5900000024"
)


def recorded(tmp_path):
    segment = make_segment(tmp_path)
    offset = 0
    for size, count, timestamp, last_offset_delta in RECORDED_BATCHES:
        batch = make_batch(offset, size=size, count=count, timestamp=FIRST_TIMESTAMP + timestamp)
        append(segment, batch)
        offset += last_offset_delta + 1
    return segment


def index_files(directory):
    return [
        (directory / f"00000000000000000000.{suffix}").read_bytes().hex()
        for suffix in ("index", "timeindex")
    ]


def test_indexes_after_a_clean_close_are_byte_equal_to_apache_kafkas(tmp_path):
    segment = recorded(tmp_path)
    assert segment.log.size() == sum(size for size, *_ in RECORDED_BATCHES)
    segment.close()
    assert index_files(tmp_path) == [RECORDED_INDEX, RECORDED_TIME_INDEX]


def test_one_write_of_many_batches_makes_the_same_entries(tmp_path):
    segment = recorded(tmp_path)
    data = segment.log.read_at(0, segment.size)
    segment.delete()
    again = make_segment(tmp_path)
    append(again, data)
    again.close()
    assert index_files(tmp_path) == [RECORDED_INDEX, RECORDED_TIME_INDEX]


def test_recovery_builds_the_same_indexes(tmp_path):
    segment = recorded(tmp_path)
    segment.close()
    segment.offset_index.file.unlink()
    (tmp_path / "00000000000000000000.timeindex").write_bytes(b"rubbish")
    again = Segment(Files(), str(tmp_path), 0, created_ms=0)
    assert again.sanity_check()
    headers = []
    result = again.recover(lambda header, _: headers.append(header), index_interval_bytes=4096)
    assert (result.cut_bytes, result.next_offset, result.reason) == (0, 37, None)
    assert len(headers) == len(RECORDED_BATCHES)
    assert index_files(tmp_path) == [RECORDED_INDEX, RECORDED_TIME_INDEX]
    assert again.sanity_check() is None
    assert (again.max_timestamp, again.offset_of_max_timestamp) == (FIRST_TIMESTAMP + 601, 36)


def test_the_zero_filled_indexes_of_a_killed_kafka_load(tmp_path):
    segment = recorded(tmp_path)
    segment.close_files()
    for suffix, entries, length in (
        ("index", RECORDED_INDEX, 10_485_760),
        ("timeindex", RECORDED_TIME_INDEX[:-24], 10_485_756),
    ):
        path = tmp_path / f"00000000000000000000.{suffix}"
        path.write_bytes(bytes.fromhex(entries))
        os.truncate(path, length)
    again = Segment(Files(), str(tmp_path), 0, created_ms=0)
    assert again.sanity_check() is None
    assert again.max_timestamp == FIRST_TIMESTAMP + 565
    positions = [0, *accumulate(size for size, *_ in RECORDED_BATCHES)]
    for number, (position, header) in enumerate(again.iterate_headers()):
        assert position == positions[number]
        location = again.position_for_offset(header.last_offset)
        assert location == (position, header)
    again.close()
    assert index_files(tmp_path) == [RECORDED_INDEX, RECORDED_TIME_INDEX[:-24]]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_every_offset_finds_its_batch_in_any_order(tmp_path, is_reopened):
    segment = filled(tmp_path, 120, base_offset=500)
    if is_reopened:
        segment.close()
        segment = Segment(Files(), str(tmp_path), 500, created_ms=0)
    for step in (1, 7, 101):
        for number in range(0, 240 * step, step):
            offset = 500 + number % 240
            location = segment.position_for_offset(offset)
            assert location is not None
            assert location[0] == (number % 240) // 2 * 200
            assert location[1].base_offset <= offset <= location[1].last_offset
    assert segment.position_for_offset(740) is None
    location = segment.position_for_offset(0)
    assert location is not None
    assert location[0] == 0


def test_an_offset_in_a_gap_finds_the_next_batch(tmp_path):
    segment = make_segment(tmp_path)
    append(segment, make_batch(0, count=2))
    first_size = segment.size
    append(segment, make_batch(10, count=2))
    assert segment.read_slice(5, 10**6, end_position=segment.size, min_one=False) == (
        segment.log, first_size, segment.size - first_size,
    )  # fmt: skip


def test_slices_respect_their_bounds(tmp_path):
    segment = filled(tmp_path, 10)

    def slice_of(offset, max_bytes, **bounds):
        settings = {"end_position": segment.size, "min_one": True} | bounds
        file_slice = segment.read_slice(offset, max_bytes, **settings)
        return None if file_slice is None else (file_slice.position, file_slice.length)

    assert slice_of(0, 10**6) == (0, 2000)
    assert slice_of(1, 450) == (0, 450)
    assert slice_of(4, 450) == (400, 450)
    assert slice_of(4, 10) == (400, 200)
    assert slice_of(4, 10, min_one=False) == (400, 10)
    assert slice_of(4, 0, min_one=False) == (400, 0)
    assert slice_of(4, 10**6, end_position=600) == (400, 200)
    assert slice_of(4, 10**6, end_position=400) == (400, 0)
    assert slice_of(4, 10**6, end_position=0) == (400, 0)
    assert slice_of(20, 10**6) is None


def test_a_reader_at_the_end_of_the_log_needs_no_reads(tmp_path, monkeypatch):
    segment = filled(tmp_path, 50)
    monkeypatch.setattr(DataFile, "read_at", lambda *_: pytest.fail("a read"))
    append(segment, make_batch(100))
    piece = segment.read_slice(100, 1000, end_position=segment.size, min_one=True)
    assert piece is not None
    assert (piece.position, piece.length) == (10_000, segment.size - 10_000)


def test_a_reader_that_moves_on_reads_one_chunk_of_headers_at_a_time(tmp_path, monkeypatch):
    segment = filled(tmp_path, 400, interval=4096)
    reads = []
    real = DataFile.read_at

    def read_at(file, position, length):
        reads.append(file)
        return real(file, position, length)

    monkeypatch.setattr(DataFile, "read_at", read_at)
    for offset in range(0, 800, 2):
        assert segment.read_slice(offset, 200, end_position=segment.size, min_one=True)
    assert reads.count(segment.log) <= 400
    assert len(reads) - reads.count(segment.log) <= 2  # the index is searched in memory


def failing_write(monkeypatch, *, suffix):
    real = DataFile.write_at

    def write_at(file, position, buffers):
        if file.path.endswith(suffix):
            raise OSError(errno.ENOSPC, "disk full")
        real(file, position, buffers)

    monkeypatch.setattr(DataFile, "write_at", write_at)


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_failed_append_leaves_no_trace(tmp_path, monkeypatch, suffix):
    filled(tmp_path, 7, interval=1000).close()
    segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    append(segment, make_batch(14, size=1200, count=2, timestamp=70))  # the next one gets entries
    files = sorted(tmp_path.iterdir())
    contents = [path.read_bytes() for path in files]
    before = (segment.size, segment.max_timestamp, segment.offset_index.entry_count)
    failing_write(monkeypatch, suffix=suffix)
    with pytest.raises(OSError, match="disk full"):
        append(segment, make_batch(16, timestamp=10**6), interval=1000)
    assert (segment.size, segment.max_timestamp, segment.offset_index.entry_count) == before
    assert segment.log.size() == segment.size
    monkeypatch.undo()
    assert [path.read_bytes() for path in files] == contents
    append(segment, make_batch(16, timestamp=10**6), interval=1000)
    assert segment.offset_index.entry_count == before[2] + 1
    assert segment.time_index.last_entry() == (10**6, 16)


def test_written_batch_is_invisible_until_committed(tmp_path):
    segment = filled(tmp_path, 3)
    batch = make_batch(6, timestamp=99)
    write = segment.write(batch, [read_batch_header(batch)], index_interval_bytes=1)
    assert segment.size == 600
    assert segment.position_for_offset(6) is None
    assert segment.max_timestamp == 20
    assert segment.offset_index.entry_count == 0
    segment.commit(write)
    assert segment.size == 600 + len(batch)
    location = segment.position_for_offset(6)
    assert location is not None
    assert location[0] == 600
    assert segment.max_timestamp == 99
    assert segment.offset_index.last_entry() == (6, 600)


def test_timestamps_are_found_to_the_record(tmp_path):
    segment = make_segment(tmp_path)
    for base, times in ((0, [100, 300, 200]), (3, [50]), (4, [400, 500, 450]), (7, [500])):
        records = [Record(base + delta, ts, None, b"v", []) for delta, ts in enumerate(times)]
        append(segment, build_batch(records, base_offset=base, leader_epoch=base), interval=1)

    def find(timestamp, start_offset=0):
        steps = first_at_or_after([segment], timestamp, start_offset=start_offset)
        return in_one_go(steps)

    assert find(0) == (100, 0, 0)
    assert find(101) == (300, 1, 0)
    assert find(300) == (300, 1, 0)
    assert find(301) == (400, 4, 4)
    assert find(401) == (500, 5, 4)
    assert find(0, start_offset=2) == (200, 2, 0)
    assert find(201, start_offset=2) == (400, 4, 4)
    assert find(500, start_offset=6) == (500, 7, 7)
    assert find(501) is None
    assert in_one_go(first_with_max_timestamp(segment)) == (500, 5, 4)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (500, 6)


def test_untimed_records_match_no_timestamp_but_have_a_maximum(tmp_path):
    segment = make_segment(tmp_path)
    assert in_one_go(first_with_max_timestamp(segment)) is None
    append(segment, make_batch(0, timestamp=-1))
    append(segment, make_batch(1, timestamp=-1))
    assert in_one_go(first_with_max_timestamp(segment)) == (-1, 0, 0)
    assert in_one_go(first_at_or_after([segment], 0, start_offset=0)) is None
    assert segment.largest_timestamp() > 1_600_000_000_000
    segment.close()
    assert index_files(tmp_path) == ["", ""]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_truncation_drops_the_batch_that_holds_the_offset(tmp_path, is_reopened):
    segment = filled(tmp_path, 50)
    if is_reopened:
        segment.close()
        segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    segment.truncate_to(41)  # in the middle of batch 20
    assert (segment.size, segment.log.size()) == (4000, 4000)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (190, 39)
    assert segment.position_for_offset(40) is None
    assert segment.position_for_offset(39) is not None
    assert segment.offset_index.last_entry().offset < 41
    assert segment.sanity_check() is None
    append(segment, make_batch(40, timestamp=5))
    location = segment.position_for_offset(40)
    assert location is not None
    assert location[0] == 4000
    segment.truncate_to(0)
    assert (segment.size, segment.max_timestamp, segment.first_batch_timestamp) == (0, -1, None)
    append(segment, make_batch(0, timestamp=7))
    assert (segment.max_timestamp, segment.first_batch_timestamp) == (7, 7)


def test_truncation_behind_the_end_changes_nothing(tmp_path):
    segment = filled(tmp_path, 5)
    segment.truncate_to(10)
    assert (segment.size, segment.max_timestamp) == (1000, 40)


def test_the_leaders_twelve_bytes_do_not_spoil_the_checksum(tmp_path):
    segment = make_segment(tmp_path, base_offset=77)
    batch = make_batch(0, count=3)
    set_base_offset_and_epoch(batch, 0, 77, 5)
    append(segment, batch)
    result = segment.recover(lambda *_: None, index_interval_bytes=4096)
    assert (result.reason, result.next_offset) == (None, 80)


def test_the_example_of_the_readme_is_what_is_written(tmp_path):
    segment = make_segment(tmp_path)
    append(
        segment, build_batch([(None, b"hello", [])], timestamp_ms=FIRST_TIMESTAMP, leader_epoch=0)
    )
    segment.close()
    assert segment.log.read_at(0, 100).hex(" ") == (
        "00 00 00 00 00 00 00 00 00 00 00 3d 00 00 00 00 02 e6 41 a4 4b 00 00 00 00 00 00 "
        "00 00 01 8b cf e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff ff ff ff ff ff "
        "ff ff ff ff 00 00 00 01 16 00 00 00 01 0a 68 65 6c 6c 6f 00"
    )
    assert index_files(tmp_path) == ["", "0000018bcfe5680000000000"]
