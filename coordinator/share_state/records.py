"""The records that a share coordinator writes.

Source: Kafka's ShareCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.share_state_records import (
    ShareStateKey,
    ShareStateKind,
    share_state_record,
    share_state_tombstone,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.share_state.state import SharePartitionKey, StateBatch
    from wirebroker.coordinator.share_state.stored_state import StoredState


def snapshot_record(key: SharePartitionKey, state: StoredState) -> CoordinatorRecord:
    """Return the record of a whole state."""
    return share_state_record(
        ShareStateKey(ShareStateKind.SHARE_SNAPSHOT, *key),
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=_fields(state.batches),
    )


def update_record(
    key: SharePartitionKey, state: StoredState, batches: Sequence[StateBatch]
) -> CoordinatorRecord:
    """Return the record of an update: the fields of the state after it, and its own batches."""
    return share_state_record(
        ShareStateKey(ShareStateKind.SHARE_UPDATE, *key),
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        state_batches=_fields(batches),
    )


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Return the record that deletes a state."""
    return share_state_tombstone(ShareStateKey(ShareStateKind.SHARE_SNAPSHOT, *key))


def _fields(batches: Sequence[StateBatch]) -> list[dict[str, Any]]:
    return [batch.fields() for batch in batches]
