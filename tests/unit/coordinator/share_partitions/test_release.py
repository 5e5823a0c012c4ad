from __future__ import annotations

from typing import Any

from tests.support.coordinators.share_kit import LIMITS, ShareKit
from wirebroker.coordinator.share_partitions.archiving import follow_log_start
from wirebroker.coordinator.share_partitions.record_state import RecordState
from wirebroker.coordinator.share_partitions.release import take_back


def acquired(*sizes: int, **limits: Any) -> ShareKit:
    kit = ShareKit(LIMITS._replace(**limits))
    kit.append(*sizes)
    kit.fetch("a")
    return kit


def test_expired_records_are_available_again():
    kit = acquired(3)
    kit.advance(999)
    assert kit.owned("a") == [0, 1, 2]
    kit.advance(1)
    assert kit.fetch("b") == [(0, 2, 2)]


def test_expired_records_are_archived_at_the_limit():
    kit = acquired(3, delivery_count_limit=2)
    kit.advance(1_000)
    assert kit.fetch("b") == [(0, 2, 2)]
    kit.advance(1_000)
    assert kit.stored == dict.fromkeys(range(3), (RecordState.ARCHIVED, 2))
    assert kit.partition.start_offset == 3


def test_lock_that_expires_during_a_failing_write_is_released():
    kit = acquired(3)
    kit.acknowledge("a", (0, 2, [1]))
    kit.advance(1_000)
    assert kit.fetch("b") == []
    kit.answer(fails=True)
    assert kit.fetch("b") == [(0, 2, 2)]


def test_member_that_leaves_releases_only_its_records():
    kit = acquired(3)
    kit.append(3)
    kit.fetch("b")
    kit.leave("a")
    kit.answer()
    assert kit.owned("b") == [3, 4, 5]
    assert kit.fetch("c") == [(0, 2, 2)]


def test_acquisition_that_was_not_sent_does_not_count():
    kit = acquired(3)
    take_back(kit.partition, "a", 0, 2)
    assert [state.delivery_count for state in kit.partition.records.first.states] == [0]
    kit.grants.clear()
    kit.counts.clear()
    assert kit.fetch("b") == [(0, 2, 1)]


def test_only_the_members_own_records_are_taken_back():
    kit = acquired(4)
    kit.acknowledge("a", (0, 0, [1]))
    take_back(kit.partition, "a", 0, 1)
    take_back(kit.partition, "b", 2, 3)
    del kit.grants[1]
    kit.counts[1] = 0
    kit.check()
    assert kit.fetch("b") == [(1, 1, 1)]


def test_deleted_records_are_archived_when_they_are_released():
    kit = acquired(4, 4)
    kit.move_log_start(6)
    follow_log_start(kit.partition, 6)
    assert kit.partition.start_offset == 6
    kit.leave("a")
    kit.answer()
    assert kit.partition.next_fetch_offset() == 6
    assert {offset: state for offset, (state, _) in kit.stored.items() if offset < 6} == (
        dict.fromkeys(range(6), RecordState.ARCHIVED)
    )
    assert kit.fetch("b") == [(6, 7, 2)]


def test_deleted_available_records_are_archived_at_once():
    kit = acquired(4, 4)
    kit.leave("a")
    kit.answer()
    kit.move_log_start(2)
    follow_log_start(kit.partition, 2)
    kit.check()
    assert kit.partition.next_fetch_offset() == 2


def test_records_deleted_during_their_release_are_not_available():
    kit = acquired(4)
    kit.acknowledge("a", (0, 3, [2]))
    follow_log_start(kit.partition, 2)
    kit.answer()
    kit.check()
    assert kit.partition.next_fetch_offset() == 2


def test_lower_log_start_changes_nothing():
    kit = acquired(4)
    kit.acknowledge("a", (0, 1, [1]))
    kit.answer()
    follow_log_start(kit.partition, 1)
    assert kit.partition.start_offset == 2


def test_empty_partition_follows_the_log_start():
    kit = ShareKit()
    follow_log_start(kit.partition, 7)
    assert (kit.partition.start_offset, kit.partition.next_fetch_offset()) == (7, 7)


def test_timers_stay_few():
    kit = ShareKit(LIMITS._replace(max_record_locks=10_000))
    for _ in range(3_000):
        kit.append(1)
        kit.fetch("a")
        last = kit.end - 1
        kit.acknowledge("a", (last, last, [1]))
        kit.answer()
    assert len(kit.partition.timers._heap) <= 1_024
    assert kit.partition.start_offset == 3_000
