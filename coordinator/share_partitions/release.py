"""Releases acquired records: of a member that left, and of locks that expired.

Source: Kafka's SharePartition.releaseAcquiredRecords, releaseAcquisitionLockOnTimeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.share_partitions.record_state import NO_DEADLINE, RecordState
from wirebroker.coordinator.share_partitions.state_change import (
    DELIVERY_COUNT_EXCEEDED,
    DeadRecords,
    StateChange,
    persisted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
    from wirebroker.coordinator.share_partitions.record_state import InFlightState
    from wirebroker.coordinator.share_partitions.share_partition import ShareLimits, SharePartition
    from wirebroker.coordinator.share_state.state import StateBatch


class Expired(NamedTuple):
    """The result of expired locks, in force already.

    Unlike an acknowledgement it is not rolled back if the persister fails.
    """

    batches: list[StateBatch]
    dead: list[DeadRecords]
    record_count: int


def release_member(partition: SharePartition, member_id: str, limits: ShareLimits) -> StateChange:
    """Begin to release all records of a member."""
    change = StateChange(partition)
    for batch in partition.records:
        for state, new_state in _acquired(partition, batch):
            if state.member_id == member_id:
                change.begin(state, new_state, limits)
    return change


def release_expired(partition: SharePartition, limits: ShareLimits, now_ms: float) -> Expired:
    """Release the records whose locks have expired."""
    expired = Expired([], [], 0)
    count = 0
    while (timer := partition.timers.take_due(now_ms)) is not None:
        for batch in partition.records.overlapping(timer.first_offset, timer.last_offset):
            for state, new_state in _acquired(partition, batch):
                if state.deadline_ms <= now_ms and state.deadline_ms != NO_DEADLINE:
                    count += _release(partition, state, new_state, limits, expired)
    return expired._replace(record_count=count)


def take_back(
    partition: SharePartition, member_id: str, first_offset: int, last_offset: int
) -> None:
    """Undo an acquisition whose records were not sent: it does not count as a delivery."""
    for batch in partition.records.overlapping(first_offset, last_offset):
        if not batch.is_within(first_offset, last_offset):
            batch.track_offsets()
        for state in batch.among(max(first_offset, batch.first_offset), last_offset):
            if state.state is RecordState.ACQUIRED and state.member_id == member_id:
                state.take_back()
                partition.may_have_available = True


def _acquired(
    partition: SharePartition, batch: InFlightBatch
) -> Iterator[tuple[InFlightState, RecordState]]:
    """Yield the acquired states of a batch, with the state that a release gives them.

    Records below the start offset are no longer in the log.
    """
    start_offset = partition.start_offset
    if batch.begins_before(start_offset) and any(
        state.state is RecordState.ACQUIRED for state in batch.states
    ):
        batch.track_offsets()
    for state in batch.among(batch.first_offset, start_offset - 1):
        if state.state is RecordState.ACQUIRED:
            yield state, RecordState.ARCHIVED
    if batch.last_offset >= start_offset:
        for state in batch.among(max(batch.first_offset, start_offset), batch.last_offset):
            if state.state is RecordState.ACQUIRED:
                yield state, RecordState.AVAILABLE


def _release(
    partition: SharePartition,
    state: InFlightState,
    new_state: RecordState,
    limits: ShareLimits,
    expired: Expired,
) -> int:
    """Release one state; return the number of its records."""
    has_changed = state.change(
        new_state,
        limit=limits.delivery_count_limit,
        has_dead_letters=limits.has_dead_letters,
    )
    assert has_changed, "an acquired state is not changing"
    state.deadline_ms = NO_DEADLINE
    expired.batches.append(persisted(state))
    if state.state is RecordState.ARCHIVING:
        expired.dead.append(DeadRecords(state, DELIVERY_COUNT_EXCEEDED))
    elif state.state is RecordState.AVAILABLE:
        partition.may_have_available = True
    else:
        partition.count_done(state)
    return state.count
