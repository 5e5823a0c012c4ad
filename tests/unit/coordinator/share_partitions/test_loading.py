from __future__ import annotations

import pytest

from tests.support.coordinators.share_kit import KEY, LIMITS, ShareKit
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions.loading import load
from wirebroker.coordinator.share_partitions.record_state import RecordState
from wirebroker.coordinator.share_partitions.share_partition import SharePartition, SharePhase
from wirebroker.coordinator.share_partitions.state_change import (
    CLIENT_REJECT,
    DELIVERY_COUNT_EXCEEDED,
)
from wirebroker.coordinator.share_state.state import PersistedState, StateBatch


def loaded(*batches: tuple[int, int, int, int], start: int = 0) -> ShareKit:
    kit = ShareKit(start_offset=start)
    persisted = PersistedState(3, start, 0, tuple(StateBatch(*batch) for batch in batches))
    kit.partition = SharePartition(KEY, 1)
    kit.dead = in_one_go(load(kit.partition, persisted, start, LIMITS))
    kit.partition.check()
    return kit


def test_empty_state_begins_at_the_start_offset():
    kit = loaded(start=4)
    partition = kit.partition
    assert partition.phase is SharePhase.ACTIVE
    assert (partition.state_epoch, partition.start_offset, partition.end_offset) == (3, 4, 4)
    assert partition.next_fetch_offset() == 4


def test_delivery_counts_continue():
    kit = loaded((0, 4, 0, 2))
    kit.append(5)
    kit.counts = dict.fromkeys(range(5), 2)
    # From half of the limit on, records are throttled.
    assert kit.fetch("a") == [(0, 4, 3)]


def test_done_records_move_the_start_offset():
    kit = loaded((0, 4, 2, 1), (5, 6, 4, 1), (7, 9, 0, 1))
    assert kit.partition.start_offset == 7
    assert kit.partition.delivery_complete_count == 0


def test_done_records_in_between_are_counted():
    kit = loaded((0, 1, 0, 1), (2, 4, 2, 1), (5, 5, 0, 1))
    assert kit.partition.delivery_complete_count == 3


def test_gaps_are_acquired_first():
    kit = loaded((2, 3, 2, 1), (6, 7, 0, 1))
    kit.append(*[1] * 12)
    assert kit.fetch("a", 2) == [(0, 1, 1)]
    assert kit.fetch("a", 3) == [(4, 5, 1), (6, 7, 2)]
    assert kit.fetch("a", 2) == [(8, 9, 1)]
    kit.check()


def test_start_offset_stays_before_a_gap():
    kit = loaded((2, 3, 2, 1), (6, 7, 2, 1))
    kit.append(*[1] * 8)
    assert kit.partition.start_offset == 0
    kit.fetch("a")
    kit.acknowledge("a", (0, 1, [1]))
    kit.answer()
    assert kit.partition.start_offset == 4
    kit.acknowledge("a", (4, 5, [1]))
    kit.answer()
    # The next read shows that there is no other gap.
    assert kit.partition.start_offset == 6
    kit.append(1)
    assert kit.fetch("a") == [(8, 8, 1)]
    kit.acknowledge("a", (8, 8, [1]))
    kit.answer()
    assert kit.partition.start_offset == 9


def test_dead_letters_are_resumed():
    kit = loaded((0, 1, 3, 5), (2, 2, 3, 1), (3, 3, 0, 1))
    causes = [(dead.state.first_offset, dead.cause) for dead in kit.dead]
    assert causes == [(0, DELIVERY_COUNT_EXCEEDED), (2, CLIENT_REJECT)]
    kit.bury()
    assert kit.partition.start_offset == 2


@pytest.mark.parametrize(
    "batch",
    [(3, 4, 0, 1), (7, 6, 0, 1), (5, 6, RecordState.ACQUIRED, 1), (5, 6, 9, 1)],
)
def test_state_without_sense_is_refused(batch: tuple[int, int, int, int]):
    with pytest.raises(KafkaError) as raised:
        loaded(batch, start=5)
    assert raised.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_long_state_is_loaded_in_steps_and_not_after_a_fence():
    batches = tuple(StateBatch(offset, offset, offset % 2 * 2, 1) for offset in range(1_000))
    partition = SharePartition(KEY, 1)
    partition.phase = SharePhase.INITIALIZING
    steps = load(partition, PersistedState(3, 0, 0, batches), 0, LIMITS)
    next(steps)
    partition.phase = SharePhase.FENCED
    assert in_one_go(steps) == []
    assert partition.phase is SharePhase.FENCED
