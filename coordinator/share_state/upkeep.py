"""What the share coordinator does on its own: snapshots of cold partitions, deleted topics.

Source: Kafka's ShareCoordinatorShard.snapshotColdPartitions, maybeCleanupShareState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.outcome import Outcome
from wirebroker.coordinator.share_state.records import snapshot_record, tombstone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.outcome import Moment, Token
    from wirebroker.coordinator.share_state.shard import ShareStateShard
    from wirebroker.coordinator.share_state.state import SharePartitionKey

# Partitions per step.
_STEP = 100


def sweep_cold_partitions(shard: ShareStateShard, wall_ms: int) -> Iterator[Outcome]:
    """Write snapshots of partitions that were not snapshotted for long, in steps.

    Without them, the last records of a partition that is no longer used would keep all later
    records of the log.
    """
    partitions = shard.recorded.values()
    if all(
        partition.state.create_timestamp_ms != partition.state.write_timestamp_ms
        for partition in partitions
    ):
        return  # nothing was written since the last time
    for keys in _steps(shard):
        yield Outcome(
            [record for key in keys for record in _cold_snapshot(shard, key, wall_ms)],
            is_atomic=False,
        )


def _cold_snapshot(
    shard: ShareStateShard, key: SharePartitionKey, wall_ms: int
) -> Iterator[CoordinatorRecord]:
    partition = shard.recorded.get(key)
    if partition is None:
        return
    state = partition.state
    if wall_ms - state.write_timestamp_ms >= shard.settings.cold_snapshot_interval_ms:
        yield snapshot_record(
            key,
            state._replace(snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=wall_ms),
        )


def sweep_deleted_topics(shard: ShareStateShard, topic_ids: Collection[bytes]) -> Iterator[Outcome]:
    """Delete the state of deleted topics, in steps."""
    for keys in _steps(shard):
        yield Outcome(
            [tombstone(key) for key in keys if key.topic_id in topic_ids and key in shard.recorded],
            is_atomic=False,
        )


def _steps(shard: ShareStateShard) -> Iterator[tuple[SharePartitionKey, ...]]:
    keys = tuple(shard.recorded)
    return (keys[begin : begin + _STEP] for begin in range(0, len(keys), _STEP))


def redundant_end(shard: ShareStateShard, token: Token, now: Moment) -> Outcome:
    """Return the offset below which the log is redundant, or 0.

    As a response it waits until the snapshots are committed that make the records redundant.
    """
    del now
    outcome = Outcome()
    outcome.answer(token, {"result": shard.redundant_prefix.end_offset or 0})
    return outcome
