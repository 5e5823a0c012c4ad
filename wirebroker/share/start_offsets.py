"""The offset where a share group begins to read a partition (share.auto.offset.reset).

Source: Kafka's SharePartition.startOffsetDuringInitialization,
ReplicaManagerPartitionMetadataProvider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.files import ColdPagesError
from wirebroker.storage.log.search_by_time import DetachedLog, find_quickly
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.share_partitions.share_configs import OffsetReset
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.log.time_search import TimestampedOffset

# A searching thread holds the GIL: the longest delay of the loop.
_PIECE_S: Final = 0.002


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
        match = await _find_in_thread(partition, timestamp_ms, end_offset, clock)
        partition.check_leader(leader_epoch)
    if match is None:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"Offset for timestamp {timestamp_ms} not found for topic partition: {partition}",
        )
    return match.offset


async def _find_in_thread(
    partition: Partition, timestamp_ms: int, end_offset: int, clock: Clock
) -> TimestampedOffset | None:
    log = DetachedLog.of(partition.log)
    steps = log.offset_for_timestamp(timestamp_ms, up_to_offset=end_offset)
    try:
        while not (outcome := await in_thread(Work.SEARCHES, _take_some, steps, clock)):
            pass
    finally:
        log.note_learned()
    return outcome[0]


def _take_some(
    steps: Steps[TimestampedOffset | None], clock: Clock
) -> tuple[TimestampedOffset | None] | None:
    """Continue a search for a while; return its result if it ends."""
    end = clock.monotonic() + _PIECE_S
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return (stop.value,)
        if clock.monotonic() >= end:
            return None
