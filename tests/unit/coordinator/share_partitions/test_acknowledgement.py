from __future__ import annotations

from typing import Any

import pytest

from tests.support.coordinators.share_kit import LIMITS, ShareKit
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions import acknowledgement
from wirebroker.coordinator.share_partitions.acknowledgement import (
    Acknowledgement,
    acknowledge,
    check_acknowledgements,
    types_of,
)
from wirebroker.coordinator.share_partitions.record_state import RecordState

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


@pytest.mark.parametrize(
    ("batches", "is_valid"),
    [
        ([], True),
        ([(0, 5, [ACCEPT])], True),
        ([(0, 2, [GAP, ACCEPT, REJECT])], True),
        ([(0, 2, [ACCEPT]), (2, 4, [ACCEPT])], True),
        ([(5, 4, [ACCEPT])], False),
        ([(-2, 4, [ACCEPT])], False),
        ([(3, 4, [ACCEPT]), (0, 1, [ACCEPT])], False),
        ([(0, 5, [])], False),
        ([(0, 2, [ACCEPT, ACCEPT])], False),
        ([(0, 0, [ACCEPT, ACCEPT])], False),
        ([(0, 0, [5])], False),
        ([(0, 0, [-1])], False),
        ([(0, 0, [RENEW])], False),
    ],
)
def test_requests_are_checked_before_anything_changes(batches: list, is_valid: bool):
    requested = [
        Acknowledgement(first, last, in_one_go(types_of(types))) for first, last, types in batches
    ]
    check = check_acknowledgements(requested, knows_renew=True, is_renew=False)
    assert in_one_go(check) == is_valid


def test_renewals_need_a_version_and_a_flag():
    renewal = [Acknowledgement(0, 0, [RENEW])]
    assert in_one_go(check_acknowledgements(renewal, knows_renew=True, is_renew=True))
    assert not in_one_go(check_acknowledgements(renewal, knows_renew=False, is_renew=True))


def test_many_batches_and_types_are_checked_in_steps():
    many = [Acknowledgement(offset, offset, b"\x01") for offset in range(1_000)]
    assert sum(1 for _ in check_acknowledgements(many, knows_renew=True, is_renew=True)) >= 10
    assert sum(1 for _ in types_of([ACCEPT] * 500_000)) >= 5


def code_of(kit: ShareKit, member: str, *batches: tuple[int, int, list[int]]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        kit.acknowledge(member, *batches)
    return raised.value.code


def acquired(*sizes: int, **limits: Any) -> ShareKit:
    kit = ShareKit(LIMITS._replace(**limits))
    kit.append(*sizes)
    kit.fetch("a")
    return kit


def test_accepted_records_move_the_start_offset():
    kit = acquired(3, 3)
    kit.acknowledge("a", (0, 1, [ACCEPT]))
    kit.answer()
    assert kit.partition.start_offset == 2
    kit.acknowledge("a", (3, 5, [ACCEPT]))
    kit.answer()
    assert (kit.partition.start_offset, kit.partition.delivery_complete_count) == (2, 3)
    kit.acknowledge("a", (2, 2, [GAP]))
    kit.answer()
    assert (kit.partition.start_offset, kit.partition.delivery_complete_count) == (6, 0)


def test_each_offset_may_have_its_type():
    kit = acquired(4)
    kit.acknowledge("a", (0, 3, [ACCEPT, RELEASE, REJECT, GAP]))
    kit.answer()
    states = {offset: state for offset, (state, _) in kit.stored.items()}
    assert states == {
        0: RecordState.ACKNOWLEDGED,
        1: RecordState.AVAILABLE,
        2: RecordState.ARCHIVED,
        3: RecordState.ARCHIVED,
    }
    kit.check()


@pytest.mark.parametrize("last", [2, 1])
def test_record_of_another_member_is_refused(last: int):
    kit = acquired(3)
    assert code_of(kit, "b", (0, last, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    assert kit.owned("a") == [0, 1, 2]


@pytest.mark.parametrize("ack_type", [GAP, ACCEPT, RELEASE, REJECT, RENEW])
@pytest.mark.parametrize("last", [2, 1])
@pytest.mark.parametrize("late_ms", [0, 5_000])
def test_record_whose_lock_has_ended_is_refused_before_its_timer(
    ack_type: int, last: int, late_ms: int
):
    kit = acquired(3)
    kit.now_ms += LIMITS.lock_duration_ms + late_ms
    assert code_of(kit, "a", (0, last, [ack_type])) == ErrorCode.INVALID_RECORD_STATE
    kit.now_ms -= late_ms + 1
    kit.acknowledge("a", (0, last, [ack_type]))


def test_record_that_was_never_acquired_is_refused():
    kit = acquired(3)
    assert code_of(kit, "a", (3, 3, [ACCEPT])) == ErrorCode.INVALID_REQUEST
    assert code_of(kit, "a", (2, 9, [ACCEPT])) == ErrorCode.INVALID_REQUEST
    empty = ShareKit()
    assert code_of(empty, "a", (0, 0, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE


def test_record_is_acknowledged_once():
    kit = acquired(3)
    kit.acknowledge("a", (1, 2, [ACCEPT]))
    assert code_of(kit, "a", (1, 2, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    kit.answer()
    assert code_of(kit, "a", (0, 2, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE


def test_acknowledgement_after_the_lock_is_refused():
    kit = acquired(3)
    kit.advance(LIMITS.lock_duration_ms)
    assert code_of(kit, "a", (0, 2, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE


def test_refused_batch_rolls_back_the_others():
    kit = acquired(3, 3)
    refused = (0, 2, [REJECT]), (3, 3, [RELEASE]), (4, 9, [ACCEPT])
    assert code_of(kit, "a", *refused) == ErrorCode.INVALID_REQUEST
    assert kit.owned("a") == list(range(6))
    kit.check()


def test_batches_below_the_start_offset_are_ignored():
    kit = acquired(3)
    kit.acknowledge("a", (0, 2, [ACCEPT]))
    kit.answer()
    kit.acknowledge("a", (0, 2, [ACCEPT]))
    assert not kit.pending


def test_renewal_extends_the_lock():
    kit = acquired(3)
    kit.advance(LIMITS.lock_duration_ms - 1)
    kit.acknowledge("a", (0, 1, [RENEW]))
    kit.advance(1)
    assert kit.owned("a") == [0, 1]
    kit.advance(LIMITS.lock_duration_ms)
    assert kit.owned("a") == []


def test_renewal_may_be_disabled():
    kit = acquired(3, is_renew_enabled=False)
    assert code_of(kit, "a", (0, 2, [RENEW])) == ErrorCode.INVALID_RECORD_STATE
    assert code_of(kit, "a", (0, 0, [RENEW])) == ErrorCode.INVALID_RECORD_STATE


def test_rejected_records_become_dead_letters():
    kit = acquired(3, has_dead_letters=True)
    kit.acknowledge("a", (0, 1, [REJECT]))
    kit.answer()
    assert kit.partition.start_offset == 0
    kit.bury()
    assert kit.partition.start_offset == 2
    assert kit.dead_letters == dict.fromkeys((0, 1), "Offset rejected by client.")


def test_used_up_records_become_dead_letters():
    kit = acquired(2, has_dead_letters=True, delivery_count_limit=2)
    kit.acknowledge("a", (0, 1, [RELEASE]))
    kit.answer()
    kit.fetch("a")
    kit.acknowledge("a", (0, 1, [RELEASE]))
    kit.answer()
    kit.bury()
    assert set(kit.dead_letters.values()) == {"Offset delivery count exceeded the threshold."}


def test_long_acknowledgement_runs_in_steps():
    kit = ShareKit(LIMITS._replace(max_record_locks=10_000))
    kit.append(2_000)
    kit.fetch("a", 2_000)
    types = [ACCEPT, RELEASE] * 1_000
    requested = [Acknowledgement(0, 1_999, types)]
    steps = acknowledge(kit.partition, "a", requested, kit.limits, kit.now)
    assert sum(1 for _ in steps) >= 20


def test_interrupted_acknowledgement_is_rolled_back():
    kit = ShareKit(LIMITS._replace(max_record_locks=10_000))
    kit.append(2_000)
    kit.fetch("a", 2_000)
    requested = [Acknowledgement(0, 1_999, [ACCEPT, RELEASE] * 1_000)]
    steps = acknowledge(kit.partition, "a", requested, kit.limits, kit.now)
    next(steps)
    steps.close()
    assert len(kit.owned("a")) == 2_000
    kit.check()


def test_many_small_batches_are_acknowledged_in_steps():
    kit = ShareKit(LIMITS._replace(max_record_locks=10_000))
    kit.append(*[1] * 1_000)
    kit.fetch("a", 1_000, batch_size=1)
    requested = [Acknowledgement(0, 999, [ACCEPT])]
    steps = acknowledge(kit.partition, "a", requested, kit.limits, kit.now)
    assert sum(1 for _ in steps) >= 10


def test_types_of_each_offset_reach_the_batches_of_their_offsets():
    kit = ShareKit()
    kit.append(3, 1, 2)
    kit.fetch("a", 6, batch_size=1)
    kit.acknowledge("a", (1, 5, [ACCEPT, RELEASE, REJECT, ACCEPT, GAP]))
    kit.answer()
    assert {offset: state for offset, (state, _) in kit.stored.items()} == {
        1: RecordState.ACKNOWLEDGED,
        2: RecordState.AVAILABLE,
        3: RecordState.ARCHIVED,
        4: RecordState.ACKNOWLEDGED,
        5: RecordState.ARCHIVED,
    }
    assert kit.owned("a") == [0]


def test_states_of_a_batch_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(acknowledgement, "MOST_STATES", 10)
    kit = acquired(40)
    code = code_of(kit, "a", (0, 39, [ACCEPT, RELEASE] * 20))
    assert code is ErrorCode.INVALID_REQUEST
    assert len(kit.owned("a")) == 40
    kit.check()
