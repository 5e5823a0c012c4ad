from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.share_kit import LIMITS, ShareKit
from wirebroker.base.clock import finish, in_one_go
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.share_partitions.acknowledgement import Acknowledgement, acknowledge
from wirebroker.coordinator.share_partitions.archiving import follow_log_start
from wirebroker.coordinator.share_partitions.record_state import RecordState
from wirebroker.coordinator.share_partitions.release import (
    Expired,
    release_expired,
    release_member,
    take_back,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ACCEPT, RELEASE = 1, 2


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


def test_deleted_records_that_are_taken_back_are_archived():
    kit = acquired(4)
    kit.append(2)
    kit.move_log_start(2)
    follow_log_start(kit.partition, 2)
    take_back(kit.partition, "a", 0, 3)
    kit.partition.check()
    assert kit.partition.next_fetch_offset() == 2


def test_records_that_are_all_deleted_and_taken_back_leave_the_state():
    kit = acquired(4)
    follow_log_start(kit.partition, 4)
    take_back(kit.partition, "a", 0, 3)
    assert not kit.partition.records
    assert kit.partition.next_fetch_offset() == 4


def test_locks_that_end_during_a_refused_acknowledgement_are_released():
    kit = ShareKit(LIMITS._replace(max_record_locks=10_000))
    kit.append(400)
    kit.fetch("a", 400)
    requested = [
        Acknowledgement(0, 399, [ACCEPT, RELEASE] * 200),
        Acknowledgement(0, 399, [ACCEPT]),  # refused: they are no longer acquired
    ]
    steps = acknowledge(kit.partition, "a", requested, kit.limits, kit.now)
    next(steps)
    kit.now_ms += kit.limits.lock_duration_ms
    finish(release_expired(kit.partition, kit.limits, kit.now_ms, Expired()))
    with pytest.raises(KafkaError):
        in_one_go(steps)
    kit.grants.clear()
    kit.check()
    assert kit.partition.next_fetch_offset() == 0


def test_locks_that_end_between_two_steps_of_a_failed_write_are_released():
    kit = ShareKit(LIMITS._replace(max_record_locks=10_000))
    kit.append(3_000)
    kit.fetch("a", 3_000)
    kit.acknowledge("a", (0, 2_999, [ACCEPT, RELEASE] * 1_500))
    steps = kit.pending.pop().change.roll_back(kit.now)
    next(steps)
    kit.now_ms += kit.limits.lock_duration_ms
    finish(release_expired(kit.partition, kit.limits, kit.now_ms, Expired()))
    finish(steps)
    kit.grants.clear()
    kit.check()
    assert kit.partition.next_fetch_offset() == 0


def calls_of(work: Callable[[], object]) -> int:
    """Return the number of Python calls, resumptions of generators among them."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        del frame, argument
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def alternating(count: int) -> ShareKit:
    """Return a partition of which a member has every second record, each with its own lock."""
    kit = ShareKit(LIMITS._replace(max_record_locks=10_000))
    kit.append(count)
    kit.fetch("a", count)
    kit.acknowledge("a", (0, count - 1, [ACCEPT, RELEASE] * (count // 2)))
    kit.answer()
    kit.fetch("a", count)
    return kit


def test_expiry_of_alternating_locks_is_linear():
    def calls(count: int) -> int:
        kit = alternating(count)
        return calls_of(lambda: kit.advance(kit.limits.lock_duration_ms))

    assert calls(800) < 3 * calls(400)


@pytest.mark.parametrize("work", ["expiry", "departure"])
def test_long_releases_run_in_steps(work: str):
    kit = alternating(2_000)
    now_ms = kit.now_ms + kit.limits.lock_duration_ms
    steps = (
        release_expired(kit.partition, kit.limits, now_ms, Expired())
        if work == "expiry"
        else release_member(kit.partition, "a", kit.limits, kit.now)
    )
    assert sum(1 for _ in steps) >= 10


def test_interrupted_departure_releases_nothing():
    kit = alternating(2_000)
    steps = release_member(kit.partition, "a", kit.limits, kit.now)
    next(steps)
    steps.close()
    assert len(kit.owned("a")) == 1_000
    kit.check()
