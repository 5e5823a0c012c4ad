"""Sequences, epochs and retries of KIP-98; each result was observed from Kafka 4.3.1."""

from __future__ import annotations

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch, read_batch_header
from wirebroker.storage.files import Files
from wirebroker.storage.log.producers.producer_state import ProducerState

PID = 4000
MAX_SEQUENCE = 2**31 - 1
DAY_MS = 86_400_000


def header(
    sequence, count=1, *, epoch=0, offset=0, timestamp_ms=1000, pid=PID, transactional=False
):
    batch = build_batch(
        [(None, b"v", ())] * count,
        timestamp_ms=timestamp_ms,
        base_offset=offset,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    return read_batch_header(batch)


class Partition:
    def __init__(self, directory):
        self.state = ProducerState(Files(), str(directory), expiration_ms=DAY_MS)

    def send(self, sequence, count=1, **header_fields):
        checked = header(sequence, count, **header_fields)
        guard = (
            self.state.begin_verification(
                checked.producer_id,
                sequence=sequence,
                producer_epoch=checked.producer_epoch,
                supports_epoch_bump=False,
                now_ms=0,
            )
            if checked.is_transactional
            else None
        )
        duplicate = self.state.check_append(checked, guard=guard)
        if duplicate is not None:
            return duplicate.base_offset, "duplicate"
        batch = header(sequence, count, offset=self.state.end_offset, **header_fields)
        self.state.append(batch)
        self.state.check()
        return batch.base_offset

    def refused(self, *args, **header_fields):
        with pytest.raises(KafkaError) as caught:
            self.send(*args, **header_fields)
        return caught.value.code


@pytest.fixture
def partition(tmp_path):
    return Partition(tmp_path)


def test_an_unknown_producer_may_begin_anywhere(partition):
    assert partition.send(7, 2) == 0
    assert partition.send(9) == 2


def test_a_gap_is_out_of_order(partition):
    partition.send(0, 3)
    assert partition.refused(4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_retry_of_one_of_the_last_five_gets_its_first_offsets(partition):
    for sequence in range(6):
        partition.send(sequence)
    assert [partition.send(sequence) for sequence in range(1, 6)] == [
        (offset, "duplicate") for offset in range(1, 6)
    ]
    assert partition.refused(0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_retry_with_other_records_is_no_retry(partition):
    partition.send(0, 2)
    assert partition.refused(0, 3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.refused(0, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_around_after_the_largest(partition):
    partition.send(MAX_SEQUENCE - 1, 2)
    assert partition.send(0) == 2
    assert partition.send(1) == 3
    assert partition.send(MAX_SEQUENCE - 1, 2) == (0, "duplicate")


def test_a_batch_may_wrap_around_inside(partition):
    partition.send(MAX_SEQUENCE, 2)
    assert partition.send(1) == 2
    assert partition.send(MAX_SEQUENCE, 2) == (0, "duplicate")


def test_a_new_epoch_begins_at_sequence_0(partition):
    partition.send(5, epoch=1)
    assert partition.refused(6, epoch=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.send(0, epoch=2) == 1


def test_a_lower_epoch_is_fenced(partition):
    partition.send(0, epoch=2)
    assert partition.refused(1, epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_retry_of_another_epoch_is_no_retry(partition):
    partition.send(0, epoch=0)
    partition.send(0, epoch=1)
    assert partition.refused(0, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_checking_changes_nothing(partition):
    partition.send(0)
    before = partition.state.as_rows()
    partition.state.check_append(header(1))
    partition.refused(5)
    assert partition.state.as_rows() == before


def test_an_idle_producer_expires_and_may_then_begin_anywhere(partition):
    partition.send(0, timestamp_ms=1000)
    assert partition.state.remove_expired(1000 + DAY_MS - 1) == 0
    assert partition.state.remove_expired(1000 + DAY_MS) == 1
    assert partition.send(33) == 1


def test_an_open_transaction_keeps_its_producer_and_the_last_stable_offset(partition):
    partition.send(0, transactional=True, timestamp_ms=1000)
    assert partition.state.remove_expired(10 * DAY_MS) == 0
    assert partition.state.first_unstable_offset(1) == 0
    marker = header(-1, offset=1)
    completed = partition.state.end_transaction(
        marker, is_abort=True, coordinator_epoch=3, timestamp_ms=5
    )
    assert completed == (PID, 0, 1, True)
    # The marker itself is not yet below the high watermark.
    assert partition.state.first_unstable_offset(1) == 0
    assert partition.state.first_unstable_offset(2) is None


def test_a_transaction_that_nobody_verified_is_refused(partition):
    with pytest.raises(KafkaError) as caught:
        partition.state.check_append(header(0, transactional=True))
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_a_batch_outside_of_the_open_transaction_is_refused(partition):
    partition.send(0, transactional=True)
    assert partition.refused(1) is ErrorCode.INVALID_TXN_STATE


def test_snapshot_restores_the_last_batch_after_restart(partition, tmp_path):
    partition.send(0, 2)
    partition.send(2, 3)
    assert partition.state.take_snapshot()
    assert not partition.state.take_snapshot(), "nothing is new"
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000005.snapshot"]
    again = Partition(tmp_path)
    again.state.snapshots.use([5])
    again.state.reload(log_start_offset=0, end_offset=5, now_ms=2000)
    assert again.state.as_rows() == partition.state.as_rows()
    assert again.state.end_offset == 5
    assert again.send(2, 3) == (2, "duplicate")
    assert again.refused(0, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert again.send(5) == 5


def test_expired_producers_are_left_out_of_a_reload(partition, tmp_path):
    partition.send(0, timestamp_ms=1000)
    partition.state.take_snapshot()
    partition.state.reload(log_start_offset=0, end_offset=1, now_ms=1000 + DAY_MS)
    assert partition.state.as_rows() == []


def test_an_unusable_snapshot_is_deleted_and_the_one_before_taken(partition, tmp_path):
    partition.send(0)
    partition.state.take_snapshot()
    partition.send(1)
    partition.state.take_snapshot()
    (tmp_path / "00000000000000000002.snapshot").write_bytes(b"torn")
    partition.state.reload(log_start_offset=0, end_offset=2, now_ms=1000)
    assert partition.state.end_offset == 1
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000001.snapshot"]


def test_snapshots_outside_the_log_are_deleted_by_a_reload(partition, tmp_path):
    for sequence in range(3):
        partition.send(sequence)
        partition.state.take_snapshot()
    partition.state.reload(log_start_offset=1, end_offset=2, now_ms=1000)
    assert partition.state.snapshots.offsets == [2]
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000002.snapshot"]


def test_after_a_clean_stop_the_snapshot_is_read_at_first_use(partition, tmp_path):
    partition.send(0)
    partition.state.take_snapshot()
    again = Partition(tmp_path)
    again.state.snapshots.use([1])
    again.state.open_at(1, rebuild=lambda: pytest.fail("the snapshot is good"), now_ms=0)
    path = tmp_path / "00000000000000000001.snapshot"
    hidden = path.rename(tmp_path / "hidden")
    assert again.state.end_offset == 1
    hidden.rename(path)
    assert again.send(0) == (0, "duplicate")


def test_a_snapshot_that_turns_out_unusable_at_first_use_is_rebuilt(partition, tmp_path):
    partition.send(0)
    partition.state.take_snapshot()
    (tmp_path / "00000000000000000001.snapshot").write_bytes(b"")
    again = Partition(tmp_path)
    again.state.snapshots.use([1])
    calls = []
    again.state.open_at(1, rebuild=lambda: calls.append("rebuild"), now_ms=0)
    assert again.send(44) == 1
    assert calls == ["rebuild"]


def test_stray_snapshots_are_deleted_except_the_newest(partition):
    partition.state.snapshots.use([3, 5, 8, 9])
    partition.state.snapshots.delete_strays({0, 5})
    assert partition.state.snapshots.offsets == [5, 9]
