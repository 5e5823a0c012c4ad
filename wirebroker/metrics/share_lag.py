"""The lag of share groups in records and in time, computed by their share coordinator.

The records that a group has not finished: those from its start offset on, without those that were
acknowledged or archived out of order. Each share partition is stored by one broker, which needs a
replica of the partition to know its end.

Source: Kafka's GroupCoordinatorService.describeShareGroupOffsets (KIP-1226).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.share_state.batch_merge import NO_START_OFFSET
from wirebroker.coordinator.share_state.stored_state import NO_COUNT
from wirebroker.metrics.group_rows import NOTHING_COMMITTED, GroupLag, GroupPartition

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Slices


class ShareProgress(NamedTuple):
    """The stored progress of a share partition.

    Attributes:
        start_offset: All records below it are finished; NOTHING_COMMITTED before the first fetch.
        finished_count: Finished records from there on; NO_COUNT if unknown.
    """

    start_offset: int
    finished_count: int

    def lag(self, end_offset: int | None, time_ms: int | None, now_ms: int) -> GroupLag:
        """Return the lag before an end offset; `time_ms` is that of the record at the start."""
        start_offset, finished_count = self
        if NOTHING_COMMITTED in self:
            return GroupLag(start_offset, NOTHING_COMMITTED, None)
        if end_offset is None:
            return GroupLag(start_offset, None, None)
        lag = max(0, end_offset - start_offset - finished_count)
        if lag == 0:
            return GroupLag(start_offset, 0, 0)
        return GroupLag(start_offset, lag, None if time_ms is None else max(0, now_ms - time_ms))


assert NOTHING_COMMITTED == NO_START_OFFSET == NO_COUNT


async def share_progress(broker: Broker, slices: Slices) -> dict[GroupPartition, ShareProgress]:
    """Return the progress of the share partitions whose state this broker stores."""
    found: dict[GroupPartition, ShareProgress] = {}
    topics = broker.metadata.image.topics_by_id
    for shard in list(broker.share_coordinator.shards()):
        for key, recorded in list(shard.recorded.items()):
            topic = topics.get(key.topic_id)
            if topic is not None:
                state = recorded.state
                found[GroupPartition(key.group_id, topic.name, key.partition)] = ShareProgress(
                    state.start_offset, state.delivery_complete_count
                )
            await slices.turn()
    return found
