"""Transactions in a log: markers, last stable offset, aborted transactions, verification."""

from __future__ import annotations

import pytest

from tests.unit.storage.log_kit import NOW, append, batch, commit_all, make_log
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_batches, iterate_records
from wirebroker.codecs.records.control import EndTransactionMarker, decode_control_record
from wirebroker.storage.files import DataFile, Files
from wirebroker.storage.log.index.transaction_index import AbortedTransaction
from wirebroker.storage.log.markers import append_end_marker
from wirebroker.storage.log.read import aborted_in
from wirebroker.storage.recovery.log_recovery import load_log


def send(log, producer_id, sequence=0, *, epoch=0, bump=False, count=1):
    guard = log.producer_state.begin_verification(
        producer_id,
        sequence=sequence,
        producer_epoch=epoch,
        supports_epoch_bump=bump,
        now_ms=NOW,
    )
    records = transactional(producer_id, sequence, epoch=epoch, count=count)
    return append(log, records, guard=guard)


def transactional(producer_id, sequence=0, *, epoch=0, count=1):
    return batch(
        count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


def end(log, producer_id, *, is_commit=False, epoch=0, coordinator_epoch=0, version=0):
    result = append_end_marker(
        log,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        is_commit=is_commit,
        transaction_version=version,
        leader_epoch=0,
        now_ms=NOW,
    )
    commit_all(log)
    return result.base_offset


def refused(code, do, *args, **kwargs):
    with pytest.raises(KafkaError) as caught:
        do(*args, **kwargs)
    assert caught.value.code is code


def entries(log):
    return [entry for segment in log.segments for entry in segment.transaction_index]


def test_a_marker_is_a_control_batch_of_the_producer(open_log):
    log = open_log()
    send(log, 5)
    assert end(log, 5, is_commit=True, coordinator_epoch=3) == 1
    file_slice = log.read(1, 1000, up_to_offset=2).slice
    assert file_slice is not None
    view = memoryview(file_slice.read())
    [(_, header)] = iterate_batches(view)
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    assert (header.producer_id, header.producer_epoch, header.max_timestamp) == (5, 0, NOW)
    [record] = iterate_records(view, header)
    assert decode_control_record(record.key, record.value) == EndTransactionMarker(
        is_commit=True, coordinator_epoch=3
    )


def test_a_marker_has_the_timestamp_type_of_its_topic(open_log):
    log = open_log(message_timestamp_type="LogAppendTime")
    end(log, 5)
    file_slice = log.read(0, 1000, up_to_offset=1).slice
    assert file_slice is not None
    [(_, header)] = iterate_batches(memoryview(file_slice.read()))
    assert header.uses_log_append_time


def test_open_transactions_hold_the_last_stable_offset_until_their_markers(open_log):
    log = open_log()
    append(log)
    send(log, 5)
    send(log, 6)
    append(log)
    assert log.last_stable_offset == 1
    end(log, 5)
    assert log.last_stable_offset == 2
    end(log, 6, is_commit=True)
    assert log.last_stable_offset == log.high_watermark == 6


def test_a_transaction_is_not_decided_before_the_high_watermark_has_passed_its_marker(open_log):
    log = open_log()
    send(log, 5)
    end(log, 5)
    log.high_watermark = 1
    assert log.last_stable_offset == 1
    log.high_watermark = log.log_start_offset
    assert log.last_stable_offset == 0
    log.set_high_watermark(2)
    assert log.last_stable_offset == 2


def test_only_aborted_transactions_are_indexed(open_log, tmp_path):
    log = open_log()
    send(log, 5)
    end(log, 5, is_commit=True)
    assert not list(tmp_path.glob("*.txnindex"))
    send(log, 5, 1)
    send(log, 6)
    assert end(log, 5) == 4
    end(log, 6)
    assert entries(log) == [AbortedTransaction(5, 2, 4, 3), AbortedTransaction(6, 3, 5, 6)]


def test_an_empty_transaction_is_in_no_index(open_log):
    log = open_log()
    end(log, 5)
    assert entries(log) == []
    assert log.last_stable_offset == 1


def test_an_aborted_transaction_over_several_segments_is_found_from_each(open_log):
    log = open_log(segment_bytes=200)
    send(log, 5)
    for _ in range(6):
        append(log)
    end(log, 5)
    append(log)
    assert len(log.segments) > 3
    assert [bool(list(segment.transaction_index)) for segment in log.segments].count(True) == 1
    expected = [AbortedTransaction(5, 0, 7, 8)]
    for offset in range(8):
        read = log.read(offset, 1000, up_to_offset=log.last_stable_offset)
        assert aborted_in(log, read) == expected
    assert not aborted_in(log, log.read(8, 1000, up_to_offset=log.last_stable_offset))
    assert log.aborted_transactions(0, 1) == expected


def test_aborted_transactions_after_the_slice_are_not_returned(open_log):
    log = open_log(index_interval_bytes=0)
    for number in range(10):
        send(log, 5, number)
        end(log, 5)
    read = log.read(0, 150, up_to_offset=log.last_stable_offset)
    assert [entry.first_offset for entry in aborted_in(log, read)] == [0, 2]


def test_a_follower_writes_the_same_index_as_its_leader(open_log, tmp_path):
    leader = open_log()
    send(leader, 5)
    send(leader, 6)
    end(leader, 5)
    send(leader, 5, 1)
    end(leader, 6)
    end(leader, 5)
    (tmp_path / "follower").mkdir()
    follower = make_log(tmp_path / "follower")
    load_log(follower, recovery_point=0, clean=True, now_ms=NOW)
    file_slice = leader.read(0, 1 << 20, up_to_offset=leader.log_end_offset).slice
    assert file_slice is not None
    follower.append_as_follower(file_slice.read(), now_ms=NOW)
    assert entries(follower) == entries(leader)
    assert len(entries(leader)) == 3
    follower.close(clean=False)


def test_truncation_also_truncates_the_transaction_index(open_log):
    log = open_log(segment_bytes=400)
    for number in range(8):
        send(log, 5, number)
        end(log, 5)
    before = entries(log)
    log.truncate_to(7, now_ms=NOW)
    assert entries(log) == before[:3]
    assert log.last_stable_offset == 6
    end(log, 5)
    assert entries(log) == before[:4]
    log.truncate_fully(20, now_ms=NOW)
    assert entries(log) == []


def test_a_crash_leaves_the_same_index(open_log, tmp_path):
    log = open_log(segment_bytes=400)
    for number in range(8):
        send(log, 5, number)
        send(log, 6, number)
        end(log, 5)
        end(log, 6, is_commit=number % 2 == 0)
    before = entries(log)
    log.close(clean=False)
    for path in tmp_path.glob("*.txnindex"):
        path.unlink()
    again = open_log(segment_bytes=400)
    assert entries(again) == before


def test_a_damaged_index_of_a_flushed_segment_is_built_anew(open_log, tmp_path):
    log = open_log(segment_bytes=400)
    for number in range(8):
        send(log, 5, number)
        end(log, 5)
    before = entries(log)
    log.flush()
    recovery_point = log.recovery_point
    log.close(clean=False)
    for path in tmp_path.glob("*.txnindex"):
        path.write_bytes(b"?" * 34)
    again = open_log(segment_bytes=400, recovery_point=recovery_point)
    assert entries(again) == before


def test_recovery_does_not_rewrite_a_correct_index(open_log, tmp_path, monkeypatch):
    log = open_log()
    send(log, 5)
    end(log, 5)
    log.flush()
    before = entries(log)
    log.close(clean=False)

    def no_change(*_):
        raise AssertionError("the index was touched")

    with monkeypatch.context() as patch:
        patch.setattr(DataFile, "unlink", no_change)
        patch.setattr(DataFile, "truncate", no_change)
        patch.setattr(DataFile, "write_at", no_change)
        again = open_log(recovery_point=log.recovery_point)
    assert entries(again) == before


@pytest.mark.parametrize("is_flushed", [False, True])
def test_damaged_index_is_rewritten_durably_in_one_step(
    open_log, tmp_path, monkeypatch, is_flushed
):
    log = open_log()
    send(log, 5)
    end(log, 5)
    send(log, 5, 1)
    end(log, 5)
    log.flush()
    before = entries(log)
    log.close(clean=False)
    path = tmp_path / f"{0:020d}.txnindex"
    torn = path.read_bytes()[:-1]
    path.write_bytes(torn)
    writes: list[tuple[bytes, bool]] = []
    write_file = Files.write_file

    def watched(self, target, content, *, sync=True):
        if target == str(path):
            writes.append((path.read_bytes(), sync))
            if len(writes) == 1:
                raise OSError(28, "the start dies here")
        write_file(self, target, content, sync=sync)

    monkeypatch.setattr(Files, "write_file", watched)
    recovery_point = log.recovery_point if is_flushed else 0
    with pytest.raises(OSError, match="the start dies here"):
        open_log(recovery_point=recovery_point)
    again = open_log(recovery_point=recovery_point)
    assert entries(again) == before
    assert writes == [(torn, True)] * 2


def test_a_marker_that_cannot_be_indexed_is_not_written(open_log, monkeypatch):
    log = open_log()
    send(log, 5)
    size = log.segments.active.log.size()
    write_at = DataFile.write_at

    def failing(self, position, buffers):
        if self.path.endswith(".txnindex"):
            raise OSError(28, "no room")
        write_at(self, position, buffers)

    with monkeypatch.context() as patch:
        patch.setattr(DataFile, "write_at", failing)
        with pytest.raises(OSError, match="no room"):
            end(log, 5)
    assert log.segments.active.log.size() == size
    assert log.last_stable_offset == 0
    assert end(log, 5) == 1
    assert entries(log) == [AbortedTransaction(5, 0, 1, 2)]


# -- appends --


def test_unverified_transactional_batch_is_refused(open_log):
    log = open_log()
    refused(ErrorCode.INVALID_TXN_STATE, append, log, transactional(5))


def test_a_guard_is_needed_for_the_first_batch_only(open_log):
    log = open_log()
    send(log, 5)
    assert send(log, 5, 1).base_offset == 1
    assert append(log, transactional(5, 2)).base_offset == 2
    end(log, 5, is_commit=True)
    refused(ErrorCode.INVALID_TXN_STATE, append, log, transactional(5, 3))


def test_late_coordinator_response_opens_no_other_transaction(open_log):
    log = open_log()
    guard = log.producer_state.begin_verification(
        5, sequence=0, producer_epoch=0, supports_epoch_bump=False, now_ms=NOW
    )
    end(log, 5)
    refused(ErrorCode.INVALID_TXN_STATE, append, log, transactional(5), guard=guard)


def test_a_retry_shares_the_guard_and_the_lowest_sequence_goes_first(open_log):
    log = open_log()
    begin = log.producer_state.begin_verification
    options = {"producer_epoch": 0, "supports_epoch_bump": False, "now_ms": NOW}
    guard = begin(5, sequence=1, **options)
    assert begin(5, sequence=0, **options) is guard
    refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, append, log, transactional(5, 1), guard=guard)
    assert append(log, transactional(5, 0), guard=guard).base_offset == 0
    assert begin(5, sequence=1, **options) is None
    assert append(log, transactional(5, 1)).base_offset == 1


def test_with_rising_epochs_an_unknown_producer_begins_at_sequence_0(open_log):
    log = open_log()
    refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, send, log, 5, 3, bump=True)
    assert send(log, 6, 3).base_offset == 0


def test_an_older_epoch_is_not_verified(open_log):
    log = open_log()
    end(log, 5, epoch=2)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, send, log, 5, epoch=1)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, append, log, transactional(5, epoch=1))


def test_a_later_epoch_needs_a_guard_of_its_own(open_log):
    log = open_log()
    send(log, 5)
    refused(ErrorCode.INVALID_TXN_STATE, append, log, transactional(5, epoch=1))


def test_guards_of_idle_producers_expire(open_log):
    log = open_log()
    state = log.producer_state
    guard = state.begin_verification(
        5, sequence=0, producer_epoch=0, supports_epoch_bump=False, now_ms=NOW
    )
    state.remove_expired(NOW + state.expiration_ms)
    refused(ErrorCode.INVALID_TXN_STATE, append, log, transactional(5), guard=guard)


def test_a_marker_with_the_next_epoch_leaves_the_next_transactions_guard(open_log):
    log = open_log()
    send(log, 5, bump=True)
    guard = log.producer_state.begin_verification(
        5, sequence=0, producer_epoch=1, supports_epoch_bump=True, now_ms=NOW
    )
    end(log, 5, epoch=1, version=2)
    assert append(log, transactional(5, epoch=1), guard=guard).base_offset == 2


# -- markers --


def test_a_marker_of_an_older_epoch_is_fenced(open_log):
    log = open_log()
    send(log, 5, epoch=3)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, end, log, 5, epoch=2)
    assert end(log, 5, epoch=3) == 1


def test_with_transaction_version_2_the_marker_has_a_later_epoch(open_log):
    log = open_log()
    send(log, 5, epoch=3)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, end, log, 5, epoch=3, version=2)
    assert end(log, 5, epoch=4, version=2) == 1


def test_a_marker_of_transaction_version_2_may_come_again(open_log):
    log = open_log()
    send(log, 5)
    end(log, 5, epoch=1, version=2)
    assert end(log, 5, epoch=1, version=2) == 2
    send(log, 5, epoch=1)
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, end, log, 5, epoch=1, version=2)


def test_at_the_last_epoch_a_marker_of_that_epoch_ends_a_transaction(open_log):
    log = open_log()
    send(log, 5, epoch=32767)
    assert end(log, 5, epoch=32767, version=2) == 1


def test_an_older_coordinator_is_fenced(open_log):
    log = open_log()
    send(log, 5)
    end(log, 5, coordinator_epoch=4)
    send(log, 5, 1)
    refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED, end, log, 5, coordinator_epoch=3)
    assert end(log, 5, coordinator_epoch=4) == 3
