"""The stored state of one share partition; an immutable value.

Source: Kafka's ShareGroupOffset.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from wirebroker.coordinator.share_state.batch_merge import (
    NO_START_OFFSET,
    extend_batches,
    is_ordered,
    merge_batches,
)
from wirebroker.coordinator.share_state.state import StateBatch

NO_COUNT: Final = -1
_NO_LEADER_EPOCH: Final = -1


class StoredState(NamedTuple):
    """The state of one share partition after replay of its records."""

    # Raised by each snapshot.
    snapshot_epoch: int
    # Raised by the group coordinator with each initialization.
    state_epoch: int
    # Of the share partition's leader.
    leader_epoch: int
    start_offset: int
    # Delivered records from the start offset on, without those before it; -1 if unknown.
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    # 0 if only an update is known.
    create_timestamp_ms: int
    write_timestamp_ms: int

    # Whether the batches are valid and in order, as all but false requests leave them.
    is_ordered: bool

    def merged(
        self, batches: tuple[StateBatch, ...], start_offset: int
    ) -> tuple[tuple[StateBatch, ...], bool]:
        """Return the batches after a write, and whether they are ordered.

        Raises:
            KafkaError: As merge_batches.
        """
        if self.is_ordered and is_ordered(batches):
            return extend_batches(self.batches, batches, start_offset), True
        merged = merge_batches(self.batches, batches, start_offset)
        return merged, is_ordered(merged)

    def check_merge(self, batches: tuple[StateBatch, ...], start_offset: int) -> None:
        """Raise the error that `merged` would raise."""
        if not (self.is_ordered and is_ordered(batches)):
            merge_batches(self.batches, batches, start_offset)

    def updated(
        self,
        *,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: tuple[StateBatch, ...],
    ) -> StoredState:
        """Return the state after an update.

        Raises:
            KafkaError: As merge_batches.
        """
        start = self.start_offset if start_offset == NO_START_OFFSET else start_offset
        merged, are_ordered = self.merged(batches, start)
        return self._replace(
            leader_epoch=self.leader_epoch if leader_epoch == _NO_LEADER_EPOCH else leader_epoch,
            start_offset=start,
            delivery_complete_count=delivery_complete_count,
            batches=merged,
            is_ordered=are_ordered,
        )


def state_of_snapshot(value: Any) -> StoredState:
    """Return the state that a decoded ShareSnapshotValue describes."""
    batches = batches_of(value)
    return StoredState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        batches,
        value.create_timestamp,
        value.write_timestamp,
        is_ordered(batches),
    )


def state_of_update(value: Any) -> StoredState:
    """Return the state that a decoded ShareUpdateValue describes without a snapshot."""
    batches = batches_of(value)
    return StoredState(
        value.snapshot_epoch,
        0,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        batches,
        0,
        0,
        is_ordered(batches),
    )


def batches_of(message: Any) -> tuple[StateBatch, ...]:
    """Return the batches of a decoded record or request."""
    return tuple(
        StateBatch(
            batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count
        )
        for batch in message.state_batches
    )
