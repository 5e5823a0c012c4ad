"""Which records the audit of a shadow reports as faults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.records.batches import TIMESTAMP_MS, batch
from wirebroker.codecs.records.batch import (
    build_batch,
    read_batch_header,
    set_base_offset_and_epoch,
)
from wirebroker.codecs.records.control import EndTransactionMarker, encode_control_record
from wirebroker.shadow.audit import MOST_KEPT, Audit
from wirebroker.storage.log.producers.producer_entry import ProducedBatch, ProducerEntry

PRODUCER = {"producer_id": 7, "producer_epoch": 0}
DAY_MS = 86_400_000


class Checked:
    def __init__(
        self, *, is_compacted: bool = False, known_producer: ProducerEntry | None = None
    ) -> None:
        self.audit = Audit(0, is_compacted=is_compacted, known=lambda _: known_producer)

    def take(
        self, *values: bytes, at: int | None = None, epoch: int = 0, **header: Any
    ) -> list[str]:
        """Return the faults of the next batch."""
        return self._take(batch(*values, **header), at, epoch)

    def mark(self, coordinator_epoch: int = 0, **header: Any) -> list[str]:
        key, value = encode_control_record(EndTransactionMarker(True, coordinator_epoch))
        data = build_batch(
            [(key, value, ())],
            timestamp_ms=TIMESTAMP_MS,
            is_control=True,
            is_transactional=True,
            **header,
        )
        return self._take(bytes(data), None, 0)

    def _take(self, data: bytes, at: int | None, epoch: int) -> list[str]:
        placed = bytearray(data)
        base_offset = self.audit.next_offset if at is None else at
        set_base_offset_and_epoch(placed, 0, base_offset, epoch)
        before = len(self.audit.faults)
        self.audit.take(read_batch_header(placed), memoryview(placed))
        return self.audit.faults[before:]


def test_consistent_batches_are_counted():
    checked = Checked()
    assert checked.take(b"a", b"b") == []
    assert checked.take(b"c", epoch=3) == []
    audit = checked.audit
    assert (audit.records, audit.batches, audit.next_offset) == (3, 2, 3)
    assert (audit.gap_count, audit.fault_count, audit.open_transactions) == (0, 0, 0)


def test_missing_offsets_are_gaps_not_faults():
    checked = Checked()
    checked.take(b"a")
    assert checked.take(b"b", at=10) == []
    checked.audit.skip_to(20)
    checked.audit.skip_to(15)
    assert checked.audit.gaps == [(1, 10), (11, 20)]
    assert checked.audit.next_offset == 20


def test_decreasing_leader_epoch_is_a_fault():
    checked = Checked()
    checked.take(b"a", epoch=5)
    assert checked.take(b"b", epoch=4) == ["the batch at 1: its leader epoch 4 is below 5"]


def test_unreadable_records_are_a_fault():
    broken = bytearray(batch(b"a" * 20))
    broken[61] = 0xFF
    checked = Checked()
    (fault,) = checked._take(bytes(broken), None, 0)
    assert fault.startswith("the batch at 0: its records cannot be read: ")


def test_missing_records_are_a_gap_and_extra_records_a_fault():
    records = bytearray(batch(b"a", b"b"))
    records[23:27] = (5).to_bytes(4)  # last_offset_delta
    once_compacted = Checked()
    assert once_compacted._take(bytes(records), None, 0) == []
    assert once_compacted.audit.gaps == [(0, 6)]
    compacted = Checked(is_compacted=True)
    assert compacted._take(bytes(records), None, 0) == []
    assert compacted.audit.gap_count == 0


def test_gap_in_producer_sequences_is_a_fault():
    checked = Checked()
    # the producer is still unknown
    assert checked.take(b"a", b"b", base_sequence=4, **PRODUCER) == []
    assert checked.take(b"c", base_sequence=6, **PRODUCER) == []
    expected = ["the batch at 3: producer 7 continues with sequence 8 instead of 7"]
    assert checked.take(b"d", base_sequence=8, **PRODUCER) == expected
    assert checked.take(b"e", base_sequence=9, **PRODUCER) == []


def test_sequence_wraps_to_zero_after_the_maximum():
    checked = Checked()
    checked.take(b"a", base_sequence=2**31 - 1, **PRODUCER)
    assert checked.take(b"b", base_sequence=0, **PRODUCER) == []


def test_sequence_gap_is_accepted_after_compaction_expiry_or_missing_offsets():
    compacted = Checked(is_compacted=True)
    compacted.take(b"a", base_sequence=0, **PRODUCER)
    assert compacted.take(b"b", base_sequence=5, **PRODUCER) == []
    forgotten = Checked()
    forgotten.take(b"a", base_sequence=0, **PRODUCER)
    later = TIMESTAMP_MS + DAY_MS
    assert forgotten.take(b"b", base_sequence=5, timestamp_ms=later, **PRODUCER) == []
    gap = Checked()
    gap.take(b"a", base_sequence=0, **PRODUCER)
    assert gap.take(b"b", at=9, base_sequence=5, **PRODUCER) == []


def test_new_epoch_starts_at_sequence_0_and_ends_the_old_one():
    checked = Checked()
    checked.take(b"a", base_sequence=3, **PRODUCER)
    new = {"producer_id": 7, "producer_epoch": 1}
    assert checked.take(b"b", base_sequence=0, **new) == []
    assert checked.take(b"c", base_sequence=4, **PRODUCER) == [
        "the batch at 2: producer 7 writes in epoch 0 after 1",
        "the batch at 2: producer 7 continues with sequence 4 instead of 0",
    ]


def test_sequence_check_continues_from_the_producer_state():
    entry = ProducerEntry(0)
    entry.last_timestamp_ms = TIMESTAMP_MS
    entry.batches.append(ProducedBatch(9, 9, 0, TIMESTAMP_MS))
    assert Checked(known_producer=entry).take(b"a", base_sequence=10, **PRODUCER) == []
    (fault,) = Checked(known_producer=entry).take(b"a", base_sequence=11, **PRODUCER)
    assert fault.endswith("continues with sequence 11 instead of 10")


def test_transaction_is_open_until_its_marker():
    checked = Checked()
    checked.take(b"a", base_sequence=0, is_transactional=True, **PRODUCER)
    assert checked.audit.open_transactions == 1
    assert checked.take(b"b", base_sequence=1, **PRODUCER) == [
        "the batch at 1: producer 7 writes outside its open transaction"
    ]
    assert checked.mark(**PRODUCER) == []
    assert checked.audit.open_transactions == 0
    assert checked.take(b"c", base_sequence=2, **PRODUCER) == []


def test_markers_of_older_coordinator_or_producer_epochs_are_faults():
    checked = Checked()
    assert checked.mark(4, **PRODUCER) == []
    (fault,) = checked.mark(3, **PRODUCER)
    assert fault == "the batch at 1: the marker of producer 7 has coordinator epoch 3 after 4"
    checked.mark(4, producer_id=7, producer_epoch=2)
    (fault,) = checked.mark(4, producer_id=7, producer_epoch=1)
    assert fault == "the batch at 3: producer 7 writes in epoch 1 after 2"


def test_stored_faults_are_bounded_but_all_are_counted():
    checked = Checked()
    checked.take(b"a", epoch=1)
    for _ in range(MOST_KEPT + 5):
        checked.take(b"b", epoch=0)
    assert len(checked.audit.faults) == MOST_KEPT
    assert checked.audit.fault_count == MOST_KEPT + 5


@pytest.mark.parametrize("sequence", [-1])
def test_coordinator_batches_need_no_sequence(sequence):
    checked = Checked()
    checked.take(b"a", base_sequence=0, is_transactional=True, **PRODUCER)
    assert checked.take(b"b", base_sequence=sequence, is_transactional=True, **PRODUCER) == []
