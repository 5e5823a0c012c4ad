"""Loads a share partition from its persisted state.

Source: Kafka's SharePartition.maybeInitialize.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
from wirebroker.coordinator.share_partitions.record_state import InFlightState, RecordState
from wirebroker.coordinator.share_partitions.share_partition import NO_OFFSET, SharePhase
from wirebroker.coordinator.share_partitions.state_change import (
    CLIENT_REJECT,
    DELIVERY_COUNT_EXCEEDED,
    DeadRecords,
)

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.share_partitions.share_partition import ShareLimits, SharePartition
    from wirebroker.coordinator.share_state.state import PersistedState, StateBatch

# Batches before other work may run.
_STEP: Final = 100


def load(
    partition: SharePartition, persisted: PersistedState, start_offset: int, limits: ShareLimits
) -> Steps[list[DeadRecords]]:
    """Adopt a persisted state; return records whose way to the dead letters was interrupted.

    `start_offset` is the persisted one, or the one of share.auto.offset.reset. A share partition
    that is fenced between two steps does not become active.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: the persisted batches are invalid.
    """
    partition.start_offset = start_offset
    partition.state_epoch = persisted.state_epoch
    dead: list[DeadRecords] = []
    gap_start = NO_OFFSET
    next_offset = start_offset
    for count, batch in enumerate(persisted.batches, 1):
        if not start_offset <= batch.first_offset <= batch.last_offset:
            raise _failed(partition)
        if gap_start == NO_OFFSET and batch.first_offset > next_offset:
            gap_start = next_offset
        next_offset = batch.last_offset + 1
        state = _state(partition, batch)
        partition.records.add(InFlightBatch(state))
        partition.count_done(state)
        if state.state is RecordState.ARCHIVING:
            is_used_up = state.delivery_count >= limits.delivery_count_limit
            cause = DELIVERY_COUNT_EXCEEDED if is_used_up else CLIENT_REJECT
            dead.append(DeadRecords(state, cause))
        if count % _STEP == 0:
            yield
    if partition.records:
        partition.may_have_available = True
        partition.end_offset = partition.records.last.last_offset
        if gap_start != NO_OFFSET:
            partition.open_gap(gap_start)
        partition.move_start()
    else:
        partition.end_offset = start_offset
    if partition.phase is SharePhase.FENCED:
        return []
    partition.phase = SharePhase.ACTIVE
    return dead


def _state(partition: SharePartition, batch: StateBatch) -> InFlightState:
    first_offset, last_offset, delivery_state, delivery_count = batch
    try:
        state = RecordState(delivery_state)
    except ValueError:
        raise _failed(partition) from None
    if state is RecordState.ACQUIRED:
        # Never persisted: no member could release it.
        raise _failed(partition)
    return InFlightState(first_offset, last_offset, state, delivery_count)


def _failed(partition: SharePartition) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to initialize the share partition {partition.key}"
    )
