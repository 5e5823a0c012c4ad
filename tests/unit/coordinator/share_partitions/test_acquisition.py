from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.coordinators.share_kit import LIMITS, ShareKit
from wirebroker.coordinator.share_partitions import acquisition
from wirebroker.coordinator.share_partitions.acquisition import Acquiring, RecordBatch, acquire
from wirebroker.coordinator.share_partitions.share_partition import SharePhase

if TYPE_CHECKING:
    import pytest

ALL = 1


def test_batch_mode_acquires_whole_record_batches():
    kit = ShareKit()
    kit.append(3, 4, 5)
    assert kit.fetch("a", 4) == [(0, 6, 1)]
    assert kit.fetch("b", 1) == [(7, 11, 1)]
    assert kit.fetch("a") == []
    kit.check()


def test_record_mode_acquires_as_many_as_wanted():
    kit = ShareKit()
    kit.append(10)
    assert kit.fetch("a", 4, exactly=True) == [(0, 3, 1)]
    assert kit.fetch("b", 4, exactly=True) == [(4, 7, 1)]
    assert kit.fetch("a", 4, exactly=True) == [(8, 9, 1)]
    kit.check()


def test_batches_have_about_the_wanted_size():
    kit = ShareKit()
    kit.append(2, 2, 2, 2)
    assert kit.fetch("a", batch_size=3) == [(0, 3, 1), (4, 7, 1)]


def test_no_more_records_are_in_flight_than_locks():
    kit = ShareKit(LIMITS._replace(max_record_locks=5))
    kit.append(3, 3, 3)
    # The last record batch may exceed the limit.
    assert kit.fetch("a") == [(0, 5, 1)]
    assert kit.fetch("b") == []
    kit.acknowledge("a", (0, 2, [ALL]))
    kit.answer()
    assert kit.fetch("b") == [(6, 8, 1)]


def test_records_in_flight_need_no_further_lock():
    kit = ShareKit(LIMITS._replace(max_record_locks=5))
    kit.append(3, 3, 3)
    kit.fetch("a")
    kit.acknowledge("a", (3, 4, [2]))
    kit.answer()
    assert kit.fetch("b") == [(3, 4, 2)]
    assert kit.fetch("b") == []


def test_released_parts_are_acquired_by_offset():
    kit = ShareKit()
    kit.append(10, 5)
    kit.fetch("a", 10)
    kit.acknowledge("a", (2, 3, [2]), (6, 6, [2]), (9, 9, [1]))
    kit.answer()
    assert kit.fetch("b") == [(2, 3, 2), (6, 6, 2), (10, 14, 1)]
    kit.check()


def test_release_that_is_not_persisted_is_not_available():
    kit = ShareKit()
    kit.append(4)
    kit.fetch("a")
    kit.acknowledge("a", (0, 3, [2]))
    assert kit.fetch("b") == []
    kit.answer(fails=True)
    assert kit.fetch("b") == []
    assert kit.owned("a") == [0, 1, 2, 3]


def test_records_that_compaction_removed_are_archived():
    kit = ShareKit()
    kit.append(2, 2, 2)
    kit.fetch("a")
    kit.leave("a")
    kit.answer()
    kit.compact(0)
    assert kit.fetch("b") == [(2, 5, 2)]
    kit.acknowledge("b", (2, 5, [ALL]))
    kit.answer()
    assert kit.partition.start_offset == 6


def test_read_below_the_start_offset_acquires_nothing():
    kit = ShareKit(start_offset=5)
    wish = Acquiring("a", 10, 10, 5)
    acquired = acquire(kit.partition, wish, [RecordBatch(0, 4, 70)], LIMITS, 0)
    assert acquired.records == []
    # A batch that begins below it is acquired from it on.
    acquired = acquire(kit.partition, wish, [RecordBatch(0, 9, 70)], LIMITS, 0)
    assert acquired.records == [(5, 9, 1)]


def test_fenced_partition_acquires_nothing():
    kit = ShareKit()
    kit.append(3)
    kit.partition.phase = SharePhase.FENCED
    assert kit.fetch("a") == []


def test_offsets_between_record_batches_need_no_acquisition():
    kit = ShareKit()
    kit.batches = [RecordBatch(0, 1, 70), RecordBatch(6, 7, 70)]
    kit.end = 8
    assert kit.fetch("a", 3) == [(0, 2, 1)]
    assert kit.fetch("a", 3) == [(6, 7, 1)]
    kit.acknowledge("a", (0, 2, [ALL]), (6, 7, [ALL]))
    kit.answer()
    assert kit.partition.start_offset == 8


def test_ranges_of_an_acquisition_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(acquisition, "MOST_RANGES", 3)
    kit = ShareKit()
    kit.append(*[1] * 8)
    assert kit.fetch("a", batch_size=1) == [(0, 0, 1), (1, 1, 1), (2, 2, 1)]
    assert kit.fetch("a", batch_size=1) == [(3, 3, 1), (4, 4, 1), (5, 5, 1)]
    assert kit.fetch("a", batch_size=1) == [(6, 6, 1), (7, 7, 1)]
    kit.check()


def test_ranges_of_records_that_are_delivered_again_are_limited(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(acquisition, "MOST_RANGES", 3)
    kit = ShareKit()
    kit.append(8, 8)
    kit.fetch("a", batch_size=8)
    kit.acknowledge("a", (0, 15, [1, 2] * 8))
    kit.answer()
    kit.append(1)
    assert kit.fetch("a") == [(1, 1, 2), (3, 3, 2), (5, 5, 2)]
    assert kit.fetch("a") == [(7, 7, 2), (9, 9, 2), (11, 11, 2)]
    assert kit.fetch("a") == [(13, 13, 2), (15, 15, 2), (16, 16, 1)]
    kit.check()
