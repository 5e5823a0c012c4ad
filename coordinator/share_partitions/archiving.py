"""Archives available records that are no longer in the log.

Source: Kafka's SharePartition.updateCacheAndOffsets, maybeArchiveStaleBatches, archiveRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.share_partitions.record_state import TERMINAL, RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
    from wirebroker.coordinator.share_partitions.record_state import InFlightState
    from wirebroker.coordinator.share_partitions.share_partition import SharePartition


def archive(
    partition: SharePartition,
    batches: Iterable[InFlightBatch],
    first_offset: int,
    last_offset: int,
    from_state: RecordState,
) -> bool:
    """Archive the records of a range that are in a state; return whether there were any."""
    has_archived = False
    for batch in batches:
        if batch.last_offset < first_offset or batch.first_offset > last_offset:
            continue
        if not batch.tracks_offsets and not batch.is_within(first_offset, last_offset):
            if batch.state.state is not from_state:
                continue
            batch.track_offsets()
        first = max(first_offset, batch.first_offset)
        for state in batch.among(first, last_offset):
            # A state that is changing may extend beyond the range: see `note_available`.
            if state.state is from_state and state.last_offset <= last_offset:
                state.archive()
                partition.count_done(state)
                has_archived = True
    return has_archived


def archive_stale(partition: SharePartition, fetch_offset: int, base_offset: int) -> None:
    """Archive available records between the wanted offset and the first one in the log.

    Compaction may have removed them.
    """
    if not partition.records or fetch_offset >= base_offset:
        return
    batches = partition.records.overlapping(fetch_offset, base_offset - 1)
    if archive(partition, batches, fetch_offset, base_offset - 1, RecordState.AVAILABLE):
        partition.may_have_available = True


def follow_log_start(partition: SharePartition, log_start_offset: int) -> None:
    """Move the start offset to a later log start; available records below it are archived."""
    if log_start_offset <= partition.start_offset:
        return
    if not partition.records:
        partition.start_offset = partition.end_offset = log_start_offset
        partition.delivery_complete_count = 0
        return
    last_offset = log_start_offset - 1
    records = partition.records
    start_offset = partition.start_offset
    has_archived = archive(partition, records, start_offset, last_offset, RecordState.AVAILABLE)
    if has_archived:
        partition.may_have_available = True
    done_count = 0
    for batch in records.overlapping(start_offset, last_offset):
        for state in batch.states:
            if state.state in TERMINAL:
                first = max(start_offset, state.first_offset)
                done_count += max(0, min(last_offset, state.last_offset) - first + 1)
    partition.start_offset = log_start_offset
    partition.delivery_complete_count -= done_count
    partition.end_offset = max(partition.end_offset, log_start_offset)


def note_available(partition: SharePartition, state: InFlightState) -> None:
    """Note that records are available again; archive those that are below the start offset."""
    partition.may_have_available = True
    last_offset = partition.start_offset - 1
    if state.first_offset <= last_offset:
        batches = partition.records.overlapping(state.first_offset, last_offset)
        archive(partition, batches, state.first_offset, last_offset, RecordState.AVAILABLE)
