"""Releases acquired records: of a member that left, and of locks that expired.

Source: Kafka's SharePartition.releaseAcquiredRecords, releaseAcquisitionLockOnTimeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import finish
from wirebroker.coordinator.share_partitions.archiving import note_available
from wirebroker.coordinator.share_partitions.record_state import NO_DEADLINE, RecordState
from wirebroker.coordinator.share_partitions.state_change import (
    DELIVERY_COUNT_EXCEEDED,
    DeadRecords,
    StateChange,
    persisted,
)
from wirebroker.coordinator.share_state.state import StateBatch  # noqa: TC001 - compiled tuples look for it

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
    from wirebroker.coordinator.share_partitions.record_state import InFlightState
    from wirebroker.coordinator.share_partitions.share_partition import ShareLimits, SharePartition


# States, or timers, before other work may run.
_STEP: Final = 100


class Expired:
    """The result of expired locks, in force already.

    Unlike an acknowledgement it is not rolled back if the persister fails.

    Attributes:
        batches: The new states, as the persister stores them.
        dead: Records that are dead letters now.
        record_count: The number of released records.
    """

    __slots__ = ("batches", "dead", "record_count")

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []
        self.dead: list[DeadRecords] = []
        self.record_count = 0


def release_member(
    partition: SharePartition, member_id: str, limits: ShareLimits, now_ms: Callable[[], float]
) -> Steps[StateChange]:
    """Begin to release all records of a member; closed early, release none.

    `now_ms` returns the time of locks.
    """
    change = StateChange(partition)

    def release(state: InFlightState, new_state: RecordState) -> None:
        if state.member_id == member_id:
            change.begin(state, new_state, limits)

    try:
        if partition.records:
            first_offset = partition.records.first.first_offset
            last_offset = partition.records.last.last_offset
            yield from _each_acquired(partition, first_offset, last_offset, release)
    except BaseException:
        finish(change.roll_back(now_ms))
        raise
    return change


def release_expired(
    partition: SharePartition, limits: ShareLimits, now_ms: float, expired: Expired
) -> Steps[None]:
    """Release the records whose locks have expired, and add them to `expired`."""

    def release(state: InFlightState, new_state: RecordState) -> None:
        if NO_DEADLINE != state.deadline_ms <= now_ms:
            _release(partition, state, new_state, limits, expired)

    count = 0
    while (timer := partition.timers.take_due(now_ms)) is not None:
        yield from _each_acquired(partition, timer.first_offset, timer.last_offset, release)
        count += 1
        if count % _STEP == 0:
            yield


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
                note_available(partition, state)
    partition.move_start()


def _each_acquired(
    partition: SharePartition,
    first_offset: int,
    last_offset: int,
    release: Callable[[InFlightState, RecordState], None],
) -> Steps[None]:
    """Call `release` with the acquired states of a range, and the state that a release gives them.

    A state that begins or ends outside is passed as a whole. Between two steps the states may
    change in any way.
    """
    records = partition.records
    next_offset = first_offset
    while next_offset <= last_offset:
        batch = records.floor(next_offset)
        if batch is None or batch.last_offset < next_offset:
            batch = records.higher(next_offset)
            if batch is None or batch.first_offset > last_offset:
                return
            next_offset = batch.first_offset
        next_offset, is_interrupted = _some_acquired(
            partition, batch, next_offset, last_offset, release
        )
        if is_interrupted:
            yield


def _some_acquired(
    partition: SharePartition,
    batch: InFlightBatch,
    first_offset: int,
    last_offset: int,
    release: Callable[[InFlightState, RecordState], None],
) -> tuple[int, bool]:
    """Call `release` with some states of a batch; return the next offset, and whether it stopped.

    Records below the start offset are no longer in the log.
    """
    start_offset = partition.start_offset
    if batch.begins_before(start_offset):
        batch.divide_acquired(start_offset)
    index = batch.index(first_offset)
    states = batch.states[index : index + _STEP]
    for state in states:
        if state.first_offset > last_offset:
            return last_offset + 1, False
        if state.state is RecordState.ACQUIRED:
            is_deleted = state.last_offset < start_offset
            release(state, RecordState.ARCHIVED if is_deleted else RecordState.AVAILABLE)
    return states[-1].last_offset + 1, len(states) == _STEP


def _release(
    partition: SharePartition,
    state: InFlightState,
    new_state: RecordState,
    limits: ShareLimits,
    expired: Expired,
) -> None:
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
    expired.record_count += state.count
