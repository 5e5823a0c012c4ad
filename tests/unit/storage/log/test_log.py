"""A partition's log: append in three steps, follower appends, roll, bounds, truncation."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

from tests.support.storage.time_search import offset_of_max_timestamp
from tests.unit.storage.log_kit import NOW, append, batch, commit_all, fields_of, read_all
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import (
    batch_crc,
    build_batch,
    iterate_batches,
    read_batch_header,
)
from wirebroker.codecs.records.control import EndTransactionMarker, encode_control_record
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.log.append import AppendOrigin

MINUTE_MS = 60_000


def bases(log):
    return log.segments.base_offsets


def names(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


# -- append --


def test_an_append_assigns_offsets_and_the_leader_epoch(open_log):
    log = open_log()
    assert fields_of(append(log, batch(2), leader_epoch=7)) == (0, 1, -1, 0, False)
    assert fields_of(append(log, batch(3), leader_epoch=7)) == (2, 4, -1, 0, False)
    headers = [header for _, header in iterate_batches(read_all(log))]
    assert [header.base_offset for header in headers] == [0, 2]
    assert [header.leader_epoch for header in headers] == [7, 7]
    stored = memoryview(read_all(log))
    assert batch_crc(stored, 0, headers[0].size) == headers[0].crc
    assert log.log_end_offset == 5
    assert log.leader_epochs.entries == [(7, 0)]


def test_prepare_changes_nothing_and_steps_run_separately(open_log):
    log = open_log()
    append(log)
    plan = log.prepare_append(batch(2), leader_epoch=1, now_ms=NOW)
    assert log.log_end_offset == 1
    log.write(plan)
    assert log.log_end_offset == 1
    assert len(read_all(log)) == log.size_bytes
    assert log.commit(plan).base_offset == 1
    assert log.log_end_offset == 3
    commit_all(log)


def test_log_append_time_is_in_the_result(open_log):
    log = open_log(message_timestamp_type="LogAppendTime")
    assert append(log, now_ms=NOW + 5).log_append_time_ms == NOW + 5
    match = offset_of_max_timestamp(log, up_to_offset=1)
    assert match is not None
    assert (match.timestamp, match.offset) == (NOW + 5, 0)


def test_a_recompressed_batch_is_stored_in_the_topics_codec(open_log):
    log = open_log(compression_type="lz4")
    append(log, batch(5, value=b"x" * 100))
    header = read_batch_header(read_all(log))
    assert header.codec.name == "LZ4"
    assert log.log_end_offset == 5


def test_a_batch_larger_than_a_segment_is_refused(open_log):
    log = open_log(segment_bytes=80)
    with pytest.raises(KafkaError) as caught:
        append(log, batch(20))
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    commit_all(log)


def test_a_retry_is_answered_with_its_first_offsets_and_not_stored_again(open_log):
    log = open_log()

    def send(sequence):
        return append(log, batch(2, producer_id=5, producer_epoch=0, base_sequence=sequence))

    send(0)
    send(2)
    size = log.size_bytes
    assert fields_of(send(0)) == (0, 1, NOW, 0, True)
    assert log.size_bytes == size
    assert log.log_end_offset == 4
    with pytest.raises(KafkaError) as caught:
        send(9)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_failed_write_leaves_no_trace(open_log, monkeypatch):
    log = open_log(index_interval_bytes=0)
    append(log, batch(producer_id=5, producer_epoch=0, base_sequence=0))
    rows, size = log.producer_state.as_rows(), log.size_bytes
    real_pwrite = os.pwrite

    def half_a_write(fd, data, position):
        real_pwrite(fd, bytes(data)[: len(data) // 2], position)
        raise OSError(errno.ENOSPC, "full")

    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    again = batch(producer_id=5, producer_epoch=0, base_sequence=1)
    with monkeypatch.context() as patch:
        patch.setattr("wirebroker.storage.files.pwrite", half_a_write)
        patch.setattr("wirebroker.storage.system_calls.pwritev", full)
        with pytest.raises(OSError, match="full"):
            append(log, again)
    commit_all(log)
    assert log.log_end_offset == 1
    assert log.producer_state.as_rows() == rows
    assert log.size_bytes == size == Path(log.segments.active.log.path).stat().st_size
    struct.pack_into(">q", again, 0, 0)
    assert append(log, again).base_offset == 1


def test_a_coordinator_may_append_several_and_control_batches(open_log):
    log = open_log()
    key, value = encode_control_record(EndTransactionMarker(is_commit=False, coordinator_epoch=2))
    marker = build_batch(
        [(key, value, ())],
        timestamp_ms=NOW,
        producer_id=5,
        producer_epoch=0,
        is_control=True,
        is_transactional=True,
    )
    both = memoryview(build_batch([(b"a", b"b", ())] * 2, timestamp_ms=NOW) + marker)
    result = append(log, both, origin=AppendOrigin.COORDINATOR)
    assert (result.base_offset, result.last_offset) == (0, 2)
    (row,) = log.producer_state.as_rows()
    assert (row.producer_id, row.coordinator_epoch, row.last_sequence) == (5, 2, -1)


def test_an_open_transaction_holds_the_last_stable_offset(open_log):
    log = open_log()
    append(log)
    data = batch(2, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    guard = log.producer_state.begin_verification(
        5, sequence=0, producer_epoch=0, supports_epoch_bump=False, now_ms=NOW
    )
    append(log, data, origin=AppendOrigin.COORDINATOR, guard=guard)
    append(log)
    assert log.last_stable_offset == 1
    key, value = encode_control_record(EndTransactionMarker(is_commit=True, coordinator_epoch=0))
    marker = build_batch(
        [(key, value, ())],
        producer_id=5,
        producer_epoch=0,
        is_control=True,
        is_transactional=True,
    )
    log.append_as_leader(
        memoryview(marker), leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR
    )
    assert log.last_stable_offset == 1, "the marker is above the high watermark"
    commit_all(log)
    assert log.last_stable_offset == 5


# -- follower appends --


def test_a_follower_appends_verbatim(open_log):
    log = open_log()
    first = build_batch([(b"a", b"", ())] * 2, base_offset=10, leader_epoch=3)
    second = build_batch([(b"a", b"", ())], base_offset=15, leader_epoch=5)
    log.truncate_fully(10, now_ms=NOW)
    result = log.append_as_follower(first + second + first[:30], now_ms=NOW)
    assert fields_of(result) == (10, 15, -1, 10, False)
    commit_all(log)
    assert read_all(log, 10) == first + second
    assert log.leader_epochs.entries == [(3, 10), (5, 15)]


def test_a_follower_refuses_what_does_not_continue_its_log(open_log):
    log = open_log()
    good = build_batch([(b"a", b"", ())] * 2, leader_epoch=0)
    log.append_as_follower(good, now_ms=NOW)
    with pytest.raises(KafkaError):
        log.append_as_follower(good, now_ms=NOW)
    bad = build_batch([(b"a", b"", ())], base_offset=2, leader_epoch=0)
    bad[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(bad, now_ms=NOW)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.append_as_follower(good[:40], now_ms=NOW) is None
    assert log.log_end_offset == 2


def test_a_follower_leaves_out_batches_of_a_later_epoch(open_log):
    log = open_log()
    now = build_batch([(b"a", b"", ())], base_offset=0, leader_epoch=1)
    later = build_batch([(b"a", b"", ())], base_offset=1, leader_epoch=2)
    result = log.append_as_follower(now + later, now_ms=NOW, leader_epoch=1)
    assert result is not None
    assert log.log_end_offset == 1


# -- roll --


def test_a_full_segment_rolls_before_the_append(open_log, tmp_path):
    size = len(batch())
    log = open_log(segment_bytes=2 * size)
    for _ in range(5):
        append(log)
    assert bases(log) == [0, 2, 4]
    assert len(read_all(log)) == 2 * size
    assert "00000000000000000002.snapshot" in names(tmp_path)
    assert "00000000000000000000.timeindex" in names(tmp_path)


def test_a_segment_rolls_when_records_are_segment_ms_newer_than_its_first(open_log):
    log = open_log(segment_ms=MINUTE_MS)
    append(log, batch(timestamp_ms=NOW))
    append(log, batch(timestamp_ms=NOW + MINUTE_MS))
    assert bases(log) == [0]
    append(log, batch(timestamp_ms=NOW + MINUTE_MS + 1))
    assert bases(log) == [0, 2]


def test_without_timestamps_a_segment_rolls_by_its_age(open_log):
    log = open_log(segment_ms=MINUTE_MS)
    append(log, batch(timestamp_ms=-1), now_ms=NOW + 2 * MINUTE_MS)
    assert bases(log) == [0], "an empty segment is never too old"
    append(log, batch(timestamp_ms=-1), now_ms=NOW + MINUTE_MS)
    assert bases(log) == [0]
    append(log, batch(timestamp_ms=-1), now_ms=NOW + MINUTE_MS + 1)
    assert bases(log) == [0, 2]


def test_jitter_shortens_segment_ms(open_log):
    log = open_log(segment_ms=MINUTE_MS, segment_jitter_ms=MINUTE_MS)
    append(log, batch(timestamp_ms=NOW))
    append(log, batch(timestamp_ms=NOW + MINUTE_MS))
    assert bases(log) == [0, 1]


def test_a_full_index_rolls(open_log):
    log = open_log(segment_index_bytes=24, index_interval_bytes=0)
    for number in range(6):
        append(log, batch(timestamp_ms=NOW + number))
    # Room for two time entries; the first batch gets none.
    assert bases(log) == [0, 3]


def test_an_offset_too_far_from_the_base_rolls(open_log):
    log = open_log()
    append(log)
    far = build_batch([(b"a", b"", ())], base_offset=2**31, leader_epoch=0)
    log.append_as_follower(far, now_ms=NOW)
    assert bases(log) == [0, 2**31]


def test_rolling_an_empty_segment_changes_nothing(open_log):
    log = open_log()
    log.roll(now_ms=NOW)
    assert bases(log) == [0]
    append(log)
    log.roll(now_ms=NOW)
    log.roll(now_ms=NOW)
    assert bases(log) == [0, 1]
    commit_all(log)


def test_new_settings_apply_from_the_next_append(open_log):
    log = open_log()
    append(log)
    log.settings = TopicSettings(segment_bytes=100, max_message_bytes=75)
    append(log)
    assert bases(log) == [0, 1]
    with pytest.raises(KafkaError) as caught:
        append(log, batch(9))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


# -- bounds and truncation --


def test_the_high_watermark_stays_inside_the_log(open_log):
    log = open_log()
    append(log, batch(5))
    log.set_high_watermark(99)
    assert log.high_watermark == 5
    log.set_high_watermark(-1)
    assert log.high_watermark == 0


def test_the_log_start_moves_up_to_the_high_watermark(open_log):
    log = open_log()
    append(log, batch(5), leader_epoch=2)
    log.set_high_watermark(3)
    with pytest.raises(KafkaError):
        log.increment_log_start_offset(4)
    assert log.increment_log_start_offset(3)
    assert not log.increment_log_start_offset(2)
    assert log.earliest() == (3, 2)
    with pytest.raises(KafkaError):
        log.read(2, 10, up_to_offset=3)
    log.check()


def test_truncation_drops_batches_segments_epochs_and_producers(open_log):
    log = open_log(segment_bytes=200)
    for number in range(6):
        append(
            log,
            batch(producer_id=5, producer_epoch=0, base_sequence=number),
            leader_epoch=number // 2,
        )
    assert len(bases(log)) == 3
    assert log.truncate_to(3, now_ms=NOW)
    commit_all(log)
    assert log.log_end_offset == log.high_watermark == 3
    assert log.leader_epochs.entries == [(0, 0), (1, 2)]
    assert log.producer_state.as_rows()[0].last_sequence == 2
    assert (
        append(
            log, batch(producer_id=5, producer_epoch=0, base_sequence=3), leader_epoch=7
        ).base_offset
        == 3
    )


def test_truncation_to_the_end_changes_nothing(open_log):
    log = open_log()
    append(log)
    assert not log.truncate_to(1, now_ms=NOW)
    assert log.log_end_offset == 1


def test_truncation_below_the_first_segment_starts_anew(open_log, tmp_path):
    log = open_log()
    append(log, batch(5))
    log.truncate_fully(100, now_ms=NOW)
    append(log, batch(2))
    assert log.log_end_offset == 102
    assert log.truncate_to(50, now_ms=NOW)
    commit_all(log)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert [name for name in names(tmp_path) if name.endswith(".log")] == [f"{50:020d}.log"]


# -- the end of all offsets --


def test_an_append_is_refused_where_offsets_are_used_up(open_log):
    log = open_log()
    last = (1 << 63) - (1 << 31) - 2
    log.truncate_fully(last, now_ms=NOW)
    assert append(log).base_offset == last
    for end in (last + 1, (1 << 63) - 1):
        log.truncate_fully(end, now_ms=NOW)
        with pytest.raises(KafkaError, match="no offsets are left") as refused:
            append(log)
        assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        fetched = build_batch([(None, b"v", ())], base_offset=end, timestamp_ms=NOW)
        with pytest.raises(KafkaError, match="no offsets are left"):
            log.append_as_follower(fetched, now_ms=NOW)
        assert log.log_end_offset == end
