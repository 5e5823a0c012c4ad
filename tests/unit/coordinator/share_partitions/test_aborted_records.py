from __future__ import annotations

from tests.support.coordinators.share_kit import LIMITS, ShareKit
from wirebroker.coordinator.share_partitions.aborted_records import aborted_in, without_aborted
from wirebroker.coordinator.share_partitions.acquisition import Acquiring, RecordBatch, acquire


def data(first: int, last: int, producer: int) -> RecordBatch:
    return RecordBatch(first, last, 70, producer, is_transactional=True)


def marker(offset: int, producer: int, *, aborts: bool) -> RecordBatch:
    return RecordBatch(offset, offset, 78, producer, True, aborts)


BATCHES = [
    RecordBatch(0, 1, 70),
    data(2, 4, 1),
    data(5, 6, 2),
    marker(7, 1, aborts=True),
    data(8, 9, 1),
    marker(10, 2, aborts=True),
    marker(11, 1, aborts=True),
]


def test_batches_between_the_first_one_and_the_marker_are_aborted():
    assert aborted_in(BATCHES, [(1, 2)]) == [BATCHES[1]]
    assert aborted_in(BATCHES, [(1, 2), (2, 5)]) == [BATCHES[1], BATCHES[2]]
    assert aborted_in(BATCHES, [(1, 8)]) == [BATCHES[4]]
    assert aborted_in(BATCHES, []) == []


def test_aborted_records_are_archived():
    kit = ShareKit()
    wish = Acquiring("a", 100, 100, 0)
    acquired = acquire(kit.partition, wish, BATCHES, LIMITS, 0)
    assert acquired.records == [(0, 11, 1)]
    remaining = without_aborted(kit.partition, acquired, BATCHES, [(1, 2)])
    assert (remaining.records, remaining.record_count) == ([(0, 1, 1), (5, 11, 1)], 9)
    kit.partition.check()
    assert kit.partition.delivery_complete_count == 3


def test_aborted_records_at_the_ends_are_left_out():
    kit = ShareKit()
    batches = [data(0, 1, 1), RecordBatch(2, 3, 70), data(4, 5, 1)]
    acquired = acquire(kit.partition, Acquiring("a", 100, 2, 0), batches, LIMITS, 0)
    remaining = without_aborted(kit.partition, acquired, batches, [(1, 0)])
    assert remaining.records == [(2, 3, 1)]
    none = without_aborted(kit.partition, remaining._replace(records=[]), batches, [(1, 0)])
    assert none.records == []


def test_aborted_records_alone_leave_room_for_others():
    kit = ShareKit()
    batches = [data(0, 4, 1)]
    acquired = acquire(kit.partition, Acquiring("a", 100, 100, 0), batches, LIMITS, 0)
    none = without_aborted(kit.partition, acquired, batches, [(1, 0)])
    assert none.records == []
    kit.partition.check()
    assert (kit.partition.start_offset, kit.partition.in_flight_count) == (5, 0)
