"""The offset where a share group begins to read a partition (share.auto.offset.reset).

Source: Kafka's SharePartition.startOffsetDuringInitialization,
ReplicaManagerPartitionMetadataProvider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.replica.offset_search import search_in_thread
from wirebroker.storage.files import ColdPagesError
from wirebroker.storage.log.search_by_time import find_quickly
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.share_partitions.share_configs import OffsetReset
    from wirebroker.replica.partition import Partition


async def start_offset(
    partition: Partition, reset: OffsetReset, *, leader_epoch: int, clock: Clock
) -> int:
    """Return the offset where a new group begins.

    Raises:
        KafkaError: This node does not lead in that epoch; OFFSET_NOT_AVAILABLE.
        OSError: The disk failed.
    """
    partition.check_leader(leader_epoch)
    log = partition.log
    if reset.duration_ms is None and not reset.is_latest:
        return partition.earliest()[0]
    if partition.is_catching_up:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
    end_offset = log.high_watermark
    if reset.duration_ms is None:
        return end_offset
    timestamp_ms = clock.now_ms() - reset.duration_ms
    try:
        match = find_quickly(log, timestamp_ms, up_to_offset=end_offset)
    except (TakesLongError, ColdPagesError):
        try:
            match = await search_in_thread(
                partition, timestamp_ms, up_to_offset=end_offset, clock=clock
            )
        except (KafkaError, OSError):
            # The files may have been truncated, or moved for deletion.
            partition.check_leader(leader_epoch)
            raise
        partition.check_leader(leader_epoch)
    if match is None:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"Offset for timestamp {timestamp_ms} not found for topic partition: {partition}",
        )
    return match.offset
