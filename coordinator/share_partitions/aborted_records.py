"""Removes records of aborted transactions from acquired ones (share.isolation.level).

Source: Kafka's SharePartition.maybeFilterAbortedTransactionalAcquiredRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.share_partitions.acquisition import Acquired, AcquiredRecords
from wirebroker.coordinator.share_partitions.archiving import archive
from wirebroker.coordinator.share_partitions.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.share_partitions.acquisition import RecordBatch
    from wirebroker.coordinator.share_partitions.share_partition import SharePartition


def without_aborted(
    partition: SharePartition,
    acquired: Acquired,
    batches: Sequence[RecordBatch],
    aborted: Sequence[tuple[int, int]],
) -> Acquired:
    """Archive acquired records of aborted transactions; return the others.

    `aborted` has the producer id and the first offset of each transaction.
    """
    if not aborted or not acquired.records:
        return acquired
    aborted_batches = aborted_in(batches, aborted)
    for batch in aborted_batches:
        in_flight = partition.records.overlapping(batch.base_offset, batch.last_offset)
        archive(partition, in_flight, batch.base_offset, batch.last_offset, RecordState.ACQUIRED)
    # No member acknowledges these records.
    partition.move_start()
    remaining = _remaining(acquired.records, aborted_batches)
    count = sum(records.last_offset - records.first_offset + 1 for records in remaining)
    return Acquired(remaining, count)


def aborted_in(
    batches: Sequence[RecordBatch], aborted: Sequence[tuple[int, int]]
) -> list[RecordBatch]:
    """Return the batches of aborted transactions."""
    pending = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    producers: set[int] = set()
    result: list[RecordBatch] = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while pending and pending[-1][1] <= batch.last_offset:
            producers.add(pending.pop()[0])
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            result.append(batch)
    return result


def _remaining(
    acquired: Sequence[AcquiredRecords], aborted: Sequence[RecordBatch]
) -> list[AcquiredRecords]:
    result: list[AcquiredRecords] = []
    index = 0
    for records in acquired:
        first_offset, last_offset, delivery_count = records
        while index < len(aborted) and aborted[index].last_offset < first_offset:
            index += 1
        position = index
        while position < len(aborted) and aborted[position].base_offset <= last_offset:
            batch = aborted[position]
            if first_offset < batch.base_offset:
                result.append(AcquiredRecords(first_offset, batch.base_offset - 1, delivery_count))
            first_offset = batch.last_offset + 1
            position += 1
        if first_offset <= last_offset:
            result.append(AcquiredRecords(first_offset, last_offset, delivery_count))
    return result
