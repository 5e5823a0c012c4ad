"""Compaction of small logs: which records stay, and when. compat_tests compares the bytes."""

from __future__ import annotations

import pytest

from tests.support.storage.compaction import (
    append,
    append_marker,
    batches_of,
    committed_records_of,
    compact,
    records_of,
)
from tests.support.storage.time_search import offset_for_timestamp
from tests.unit.storage.log_kit import NOW, make_log
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_PRODUCER_ID, build_batch, read_batch_header
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import DELETE_HORIZON_FLAG
from wirebroker.storage.compaction.compaction import group_segments
from wirebroker.storage.compaction.map import OffsetMap
from wirebroker.storage.compaction.range import dirty_range, make_job
from wirebroker.storage.files import Files
from wirebroker.storage.recovery.log_recovery import load_log

RETENTION = 1000


@pytest.fixture
def log(tmp_path):
    return opened(tmp_path)


def opened(tmp_path, **settings):
    settings = {
        "cleanup_policy": ("compact",),
        "delete_retention_ms": RETENTION,
        **settings,
    }
    log = make_log(tmp_path, **settings)
    load_log(log, recovery_point=0, clean=False, now_ms=NOW)
    log.set_high_watermark(log.log_end_offset)
    return log


def put(log, *pairs, timestamp_ms=NOW, **batch_fields):
    records = [(key, value, ()) for key, value in pairs]
    append(log, build_batch(records, timestamp_ms=timestamp_ms, **batch_fields), now_ms=NOW)


def close_segment(log):
    """Begin a new segment with one record, so that everything before it can be compacted."""
    log.roll(now_ms=NOW)
    put(log, (b"active", b""))


def run(log, checkpoint=None, *, now_ms=NOW, **options):
    return compact(log, Files(), checkpoint, now_ms=now_ms, **options)


def left(log):
    return [(record.offset, record.key, record.value) for record in records_of(log)[:-1]]


def headers(log):
    return [header for header, _ in batches_of(log)]


def test_the_last_record_of_each_key_stays_at_its_offset(log):
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"))
    put(log, (b"c", b"1"), (b"a", b"3"))
    close_segment(log)
    assert run(log) == 5
    assert left(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"a", b"3")]


def test_compacted_batch_keeps_its_offsets_and_producer_sequence(log):
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), producer_id=7, producer_epoch=1)
    put(log, (b"b", b"2"))
    close_segment(log)
    run(log)
    header = headers(log)[0]
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (0, 2, 1)
    assert (header.producer_id, header.producer_epoch) == (7, 1)
    assert header.leader_epoch == 0


def test_records_without_a_key_are_removed(log):
    put(log, (None, b"1"), (b"a", b"1"))
    close_segment(log)
    run(log)
    assert left(log) == [(1, b"a", b"1")]


def test_the_active_segment_is_left_alone(log):
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    assert run(log) == 0
    assert len(records_of(log)) == 2


def test_tombstone_is_removed_after_its_delete_horizon(log):
    put(log, (b"a", b"1"), timestamp_ms=NOW - 5)
    put(log, (b"a", None), (b"b", b"1"), timestamp_ms=NOW - 5)
    close_segment(log)
    run(log)
    header = headers(log)[0]
    assert header.attributes & DELETE_HORIZON_FLAG
    assert header.base_timestamp == NOW + RETENTION
    assert header.max_timestamp == NOW - 5
    assert {record.timestamp for record in records_of(log)[:-1]} == {NOW - 5}
    run(log, 0, now_ms=NOW + RETENTION - 1)
    assert left(log) == [(1, b"a", None), (2, b"b", b"1")]
    run(log, 0, now_ms=NOW + RETENTION)
    assert left(log) == [(2, b"b", b"1")]


def test_aborted_records_go_at_once_and_marker_after_horizon(log):
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"), producer_id=7, producer_epoch=0, is_transactional=True)
    append_marker(log, 7, is_commit=False, now_ms=NOW)
    put(log, (b"b", b"1"), producer_id=7, producer_epoch=0, base_sequence=1)
    close_segment(log)
    run(log)
    assert left(log) == [(0, b"a", b"1"), (3, b"b", b"1")]
    marker = headers(log)[1]
    assert marker.is_control
    assert not marker.attributes & DELETE_HORIZON_FLAG
    assert [entry.first_offset for entry in log.segments[0].transaction_index] == [1]
    # Its data is deleted now: the second compaction sets the marker's delete horizon.
    run(log, 0)
    marker = headers(log)[1]
    assert marker.attributes & DELETE_HORIZON_FLAG
    assert list(log.segments[0].transaction_index) == []
    run(log, 0, now_ms=NOW + RETENTION)
    assert not any(header.is_control for header in headers(log))
    assert [record.key for record in committed_records_of(log)[:-1]] == [b"a", b"b"]


def test_records_from_an_open_transaction_on_are_not_compacted(log):
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(now_ms=NOW)
    put(log, (b"t", b"1"), producer_id=7, producer_epoch=0, is_transactional=True)
    put(log, (b"b", b"1"))
    put(log, (b"b", b"2"))
    close_segment(log)
    assert dirty_range(log, None, now_ms=NOW).end_offset == 2
    assert run(log) == 2
    assert [record.offset for record in records_of(log)] == [1, 2, 3, 4, 5]
    append_marker(log, 7, is_commit=True, now_ms=NOW)
    close_segment(log)
    run(log, 2)
    assert [record.offset for record in records_of(log)] == [1, 2, 4, 5, 7]


def test_the_last_batch_of_a_known_producer_stays_without_its_records(log):
    put(log, (b"a", b"1"), producer_id=7, producer_epoch=3, base_sequence=40)
    put(log, (b"a", b"2"))
    close_segment(log)
    run(log)
    empty = headers(log)[0]
    assert (empty.record_count, empty.base_timestamp, empty.max_timestamp) == (0, -1, NOW)
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence) == (7, 3, 40)


def test_last_batch_of_an_expired_producer_is_removed(log):
    put(log, (b"a", b"1"), producer_id=7, producer_epoch=3, base_sequence=40)
    put(log, (b"a", b"2"))
    close_segment(log)
    log.producer_state.remove_expired(NOW + (1 << 50))
    run(log)
    assert [header.producer_id for header in headers(log)] == [NO_PRODUCER_ID] * 2


def test_last_compacted_batch_stays_to_keep_the_offset(log):
    put(log, (b"a", b"1"))
    put(log, (None, b"1"))
    close_segment(log)
    run(log)
    assert [(header.base_offset, header.record_count) for header in headers(log)] == [
        (0, 1),
        (1, 0),
        (2, 1),
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_keeps_its_codec(log, codec):
    put(log, (b"a", b"1" * 100), (b"b", b"1" * 100), codec=codec)
    put(log, (b"a", b"2"), codec=codec)
    close_segment(log)
    run(log)
    assert [header.codec for header in headers(log)[:-1]] == [codec, codec]
    assert [key for _, key, _ in left(log)] == [b"b", b"a"]


def test_segments_become_one_as_long_as_their_sum_fits(tmp_path):
    log = opened(tmp_path, segment_bytes=250)
    for number in range(12):
        put(log, (b"%d" % (number % 4), b"x" * 20))
    files = Files()
    sizes = [segment.size for segment in log.segments]
    assert len(sizes) > 4
    dirty = dirty_range(log, None, now_ms=NOW)
    job = make_job(log, dirty, now_ms=NOW)
    assert [len(group) for group in group_segments(list(log.segments)[:-1], job)] == [1] * (
        len(sizes) - 1
    )
    larger = job._replace(segment_bytes=sizes[0] * 2)
    groups = group_segments(list(log.segments)[:-1], larger)
    assert {len(group) for group in groups[:-1]} == {2}
    compact(log, files, now_ms=NOW)
    compact(log, files, 0, now_ms=NOW)
    assert len(log.segments) < len(sizes)
    assert log.segments[0].base_offset == 0


def test_merged_segments_never_exceed_index_offset_range(tmp_path):
    log = opened(tmp_path)
    put(log, (b"a", b"1"))
    for base_offset in (1 << 31, 3 << 30):
        log.roll(now_ms=NOW, base_offset=base_offset)
        batch = build_batch([(b"b", b"1", ())], timestamp_ms=NOW, base_offset=base_offset)
        log.append_as_follower(batch, now_ms=NOW)
        log.set_high_watermark(log.log_end_offset)
    close_segment(log)
    job = make_job(log, dirty_range(log, None, now_ms=NOW), now_ms=NOW)
    groups = group_segments(list(log.segments)[:-1], job)
    assert [[segment.base_offset for segment in group] for group in groups] == [
        [0],
        [1 << 31, 3 << 30],
    ]


def test_segments_beyond_the_map_memory_stay_dirty(log):
    for number in range(10):
        put(log, (b"%d" % number, b"1"))
    for number in range(10):
        put(log, (b"%d" % number, b"2"))
    close_segment(log)
    checkpoint = run(log, map_bytes=24 * 4)
    assert 0 < checkpoint < 10
    while checkpoint < 20:
        checkpoint = run(log, checkpoint, map_bytes=24 * 4)
    # Each pass keeps unknown keys; records that were already clean are compared with them.
    assert {key: value for _, key, value in left(log)} == {b"%d" % n: b"2" for n in range(10)}


def test_damage_is_not_rewritten_with_a_right_checksum(log, tmp_path):
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    path = tmp_path / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[65] ^= 1
    path.write_bytes(content)
    with pytest.raises(KafkaError) as caught:
        run(log)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert path.read_bytes() == content


def test_min_compaction_lag_keeps_young_segments_out_of_reach(tmp_path):
    log = opened(tmp_path, min_compaction_lag_ms=500)
    put(log, (b"a", b"1"), timestamp_ms=NOW - 1000)
    log.roll(now_ms=NOW)
    put(log, (b"a", b"2"), timestamp_ms=NOW - 400)
    close_segment(log)
    assert dirty_range(log, None, now_ms=NOW).end_offset == 1
    assert dirty_range(log, None, now_ms=NOW + 101).end_offset == 2


def test_log_older_than_max_compaction_lag_is_compacted(tmp_path):
    log = opened(tmp_path, max_compaction_lag_ms=500)
    put(log, (b"a", b"1"), timestamp_ms=NOW - 400)
    close_segment(log)
    assert not dirty_range(log, None, now_ms=NOW).is_overdue
    dirty = dirty_range(log, None, now_ms=NOW + 101)
    assert dirty.is_overdue
    assert dirty.is_worth_it(1.0)
    clean = dirty_range(log, 1, now_ms=NOW + 101)
    assert not clean.is_worth_it(1.0)


def test_dirtiness_is_the_share_of_bytes_from_the_checkpoint_on(log):
    put(log, (b"a", b"1"))
    log.roll(now_ms=NOW)
    put(log, (b"a", b"2"))
    close_segment(log)
    assert dirty_range(log, None, now_ms=NOW).dirty_ratio == 1.0
    dirty = dirty_range(log, 1, now_ms=NOW)
    assert dirty.dirty_ratio == 0.5
    assert not dirty.is_worth_it(0.5)
    assert dirty.is_worth_it(0.4)
    assert dirty_range(log, 2, now_ms=NOW).dirty_bytes == 0


def test_a_checkpoint_outside_of_the_log_counts_from_its_start(log):
    put(log, (b"a", b"1"))
    close_segment(log)
    for checkpoint in (-1, 5):
        dirty = dirty_range(log, checkpoint, now_ms=NOW)
        assert dirty.is_checkpoint_wrong
        assert dirty.first_dirty_offset == 0
    assert not dirty_range(log, 1, now_ms=NOW).is_checkpoint_wrong


def test_time_and_offset_lookups_work_in_a_compacted_log(log):
    for number in range(200):
        put(log, (b"%d" % (number % 50), b"x" * 100), timestamp_ms=NOW + number)
    close_segment(log)
    run(log)
    match = offset_for_timestamp(log, NOW + 10, up_to_offset=log.log_end_offset)
    assert match is not None
    assert (match.offset, match.timestamp) == (150, NOW + 150)
    read = log.read(3, 1000, up_to_offset=log.log_end_offset, min_one=True).slice
    assert read is not None
    assert read_batch_header(read.read()).base_offset == 150


def test_offset_map_holds_as_many_keys_as_memory_allows():
    offset_map = OffsetMap(24 * 1000, load_factor=0.9, secret=bytes(16))
    assert all(offset_map.put(b"key %d" % number, number) for number in range(900))
    assert not offset_map.put(b"one more", 900)
    assert not offset_map.put(b"key 0", 901)
    assert [offset_map.get(b"key %d" % number) for number in range(900)] == list(range(900))
    assert offset_map.get(b"one more") == -1
    assert offset_map.latest_offset == 899


def test_offset_map_memory_is_limited_by_possible_keys():
    offset_map = OffsetMap(1 << 40, load_factor=0.9, secret=bytes(16), key_count=100)
    assert offset_map.most_keys >= 100
    assert all(offset_map.put(b"%d" % number, 5) for number in range(100))
    assert offset_map.put(b"7", 6)
    assert (offset_map.get(b"7"), offset_map.get(b"8")) == (6, 5)
