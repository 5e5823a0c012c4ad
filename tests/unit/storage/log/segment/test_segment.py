"""One segment: appends, lookups, truncation; its indexes equal those of Apache Kafka."""

import errno
import os
from itertools import accumulate

import pytest

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import (
    build_batch,
    iterate_batches,
    read_batch_header,
    set_base_offset_and_epoch,
)
from wirebroker.codecs.records.record import Record
from wirebroker.storage.files import DataFile, Files
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_files import segment_base_offsets
from wirebroker.storage.log.time_search import first_at_or_after, first_with_max_timestamp

# Recorded from Apache Kafka 4.3.1: 24 appends of one batch each, then a clean stop.
# (size, record count, max timestamp - FIRST_TIMESTAMP, last offset delta)
FIRST_TIMESTAMP = 1_700_000_000_000
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


def make_batch(base_offset, *, size=0, count=1, timestamp=1000, epoch=0):
    values = [b""] * count
    for filling in (0, 1, 2):  # the length of the length varies with the padding
        records = [
            Record(base_offset + delta, timestamp, None, value, [])
            for delta, value in enumerate(values)
        ]
        batch = build_batch(records, base_offset=base_offset, leader_epoch=epoch)
        if len(batch) < size:
            values[0] = bytes(len(values[0]) + size - len(batch))
        elif len(batch) > size > 0:
            values[0] = values[0][: size - len(batch)]
        assert filling < 2 or not size or len(batch) == size
    return batch


def append(segment, batch, *, interval=4096):
    segment.append(batch, [header for _, header in iterate_batches(batch)],
                   index_interval_bytes=interval)  # fmt: skip


def make_segment(tmp_path, *, base_offset=0, files=None):
    segment = Segment(files or Files(), str(tmp_path), base_offset, created_ms=0)
    segment.create()
    return segment


def filled(tmp_path, count, *, base_offset=0, size=200, interval=1000, step=10):
    segment = make_segment(tmp_path, base_offset=base_offset)
    for number in range(count):
        offset = base_offset + 2 * number
        append(
            segment,
            make_batch(offset, size=size, count=2, timestamp=number * step),
            interval=interval,
        )
    return segment


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


def flip_last_byte(log):
    return log[:-1] + bytes([log[-1] ^ 1])


@pytest.mark.parametrize(
    ("damage", "batches_left", "why"),
    [
        (lambda log: log[:-1], 19, "claims 200 bytes where 199 are left"),
        (lambda log: log[:-170], 19, "in 30 bytes is too short"),
        (flip_last_byte, 19, "the CRC-32C does not match"),
        (lambda log: log + bytes(5000), 20, "length 0"),
        (lambda log: log + make_batch(38, count=2), 20, "are not from 40"),
        (lambda log: log + make_batch(2**31), 20, "too far"),
        (lambda log: log[:1000] + b"x" * 1000 + log[2000:], 5, "CORRUPT_MESSAGE"),
        (lambda _: b"", 0, None),
    ],
)
def test_recovery_cuts_at_the_first_bad_batch(tmp_path, damage, batches_left, why):
    segment = filled(tmp_path, 20)
    segment.close()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(damage(path.read_bytes()))
    damaged_size = path.stat().st_size
    segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    result = segment.recover(lambda *_: None, index_interval_bytes=1000)
    assert result.valid_bytes == 200 * batches_left == path.stat().st_size == segment.size
    assert result.cut_bytes == damaged_size - result.valid_bytes
    assert result.next_offset == 2 * batches_left
    assert (why or "") in (result.reason or "")
    assert segment.sanity_check() is None
    assert segment.max_timestamp == (batches_left - 1) * 10 if batches_left else -1
    append(segment, make_batch(result.next_offset))
    assert segment.position_for_offset(result.next_offset) is not None


def test_recovery_keeps_a_prefix_of_whole_batches_wherever_the_file_is_cut(tmp_path):
    segment = filled(tmp_path, 4, size=100)
    log = segment.log.read_at(0, 400)
    segment.close()
    for cut in range(400):
        (tmp_path / "00000000000000000000.log").write_bytes(log[:cut])
        segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
        result = segment.recover(lambda *_: None, index_interval_bytes=100)
        assert (result.valid_bytes, result.cut_bytes) == (cut - cut % 100, cut % 100)
        segment.close()


def test_recovery_keeps_the_gaps_of_compaction(tmp_path):
    segment = make_segment(tmp_path, base_offset=3)
    append(segment, make_batch(5))
    append(segment, make_batch(90))
    result = segment.recover(lambda *_: None, index_interval_bytes=1000)
    assert (result.reason, result.next_offset) == (None, 91)


def test_recovery_never_cuts_batches_of_an_old_format(tmp_path):
    segment = filled(tmp_path, 3)
    old = bytearray(make_batch(6))
    old[16] = 1
    segment.log.write_at(600, old)
    with pytest.raises(KafkaError) as raised:
        segment.recover(lambda *_: None, index_interval_bytes=1000)
    assert raised.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert segment.log.size() == 600 + len(old)


def test_recovery_ends_where_its_caller_refuses_a_batch(tmp_path):
    segment = filled(tmp_path, 5)

    def refuse_the_third(header, batch):
        assert len(batch) == header.size
        if header.base_offset == 4:
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "not now")

    result = segment.recover(refuse_the_third, index_interval_bytes=1000)
    assert (result.valid_bytes, result.next_offset) == (400, 4)


def test_recovery_reads_batches_larger_than_its_chunks(tmp_path):
    segment = make_segment(tmp_path)
    append(segment, make_batch(0, size=700_000))
    append(segment, make_batch(1, size=3_000_000))
    append(segment, make_batch(2, size=100))
    result = segment.recover(lambda *_: None, index_interval_bytes=4096)
    assert (result.valid_bytes, result.reason) == (3_700_100, None)
    assert segment.offset_index.entry_count == 2


def test_a_segment_that_was_only_listed_is_not_touched_by_close(tmp_path):
    (tmp_path / "00000000000000000000.log").write_bytes(make_batch(0))
    Segment(Files(), str(tmp_path), 0, created_ms=0).close()
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000000.log"]


def test_a_new_segment_has_all_its_files_after_close(tmp_path):
    make_segment(tmp_path).close()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".index", ".log", ".timeindex"]


def test_reopened_segment_accepts_appends(tmp_path):
    filled(tmp_path, 7).close()
    segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    assert (segment.size, segment.max_timestamp, segment.first_batch_timestamp) == (1400, 60, 0)
    append(segment, make_batch(14, timestamp=3))
    segment.close()
    segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (60, 13)
    assert segment.sanity_check() is None


def test_damaged_indexes_are_noticed(tmp_path):
    segment = filled(tmp_path, 20)
    segment.close()
    os.truncate(segment.log.path, 300)
    assert "beyond the end" in (
        Segment(Files(), str(tmp_path), 0, created_ms=0).sanity_check() or ""
    )


def test_garbage_in_the_middle_is_a_read_error(tmp_path):
    segment = filled(tmp_path, 20, interval=10**6)
    segment.log.write_at(1000, bytes(200))
    with pytest.raises(KafkaError) as raised:
        segment.position_for_offset(15)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_an_index_that_is_full_asks_for_a_new_segment(tmp_path):
    segment = filled(tmp_path, 20)
    count = segment.time_index.entry_count
    assert segment.is_index_full(count * 12)
    assert not segment.is_index_full(count * 12 + 12)


def test_deleted_segments_are_renamed_and_removed(tmp_path):
    segment = filled(tmp_path, 3)
    segment.close()
    (tmp_path / "00000000000000000000.txnindex").write_bytes(b"")
    piece = segment.read_slice(0, 100, end_position=600, min_one=False)
    assert piece is not None
    contents = piece.read()
    segment.mark_deleted()
    assert {path.suffix for path in tmp_path.iterdir()} == {".deleted"}
    assert piece.read() == contents
    segment.delete()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_follows_its_directory(tmp_path):
    old, new = tmp_path / "t-0", tmp_path / "t-0.uuid-delete"
    old.mkdir()
    segment = filled(old, 3)
    old.rename(new)
    segment.relocate(str(new))
    segment.close_files()
    assert segment.position_for_offset(3) is not None
    assert segment.offset_index.file.path.startswith(str(new))


def test_segments_are_found_by_their_names():
    names = ["00000000000000000012.log", "00000000000000000003.log", "00000000000000000003.index",
             "x.log", "00000000000000000004.log.deleted", "partition.metadata"]  # fmt: skip
    assert segment_base_offsets(names) == [3, 12]


def test_sync_covers_the_files_that_are_there(tmp_path):
    segment = make_segment(tmp_path)
    append(segment, make_batch(0))
    segment.sync()
    segment.max_timestamp  # noqa: B018 - opens the time index, which has no file yet
    segment.sync()


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
