"""Removal of expired offsets and groups (KIP-211).

    group                          an offset expires ... after
    Empty, had members             ... the group became Empty
    no members ever (simple)       ... the commit
    Stable consumers               ... the commit, if no member reads the topic
    any other, any other kind      never

... is offsets.retention.minutes, unless the commit had an expiry time (Kafka before 2.1). An Empty
group without offsets is removed too. Sweeps yield an outcome after each step.

Source: Kafka's OffsetMetadataManager.cleanupExpiredOffsets, GroupCoordinatorShard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.coordinator_records import (
    NO_EXPIRY,
    CommittedOffset,
    CoordinatorRecord,
    decode_committed_offset,
    group_prefix,
    read_partition_suffix,
)
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.coordinator.groups.group import OffsetExpiry
    from wirebroker.coordinator.groups.shard.shard import GroupShard

# Offsets per step: about 3 ms.
_STEP = 1_000


def sweep_expired(shard: GroupShard, wall_ms: int) -> Iterator[Outcome]:
    """Delete expired entries, in steps."""
    for group_id in list(shard.groups):
        yield from _sweep_group(shard, group_id, wall_ms)


def sweep_deleted_topics(shard: GroupShard, deleted: Mapping[str, bytes]) -> Iterator[Outcome]:
    """Delete the offsets of deleted topics; `deleted` maps names to ids."""
    for group_id in list({**shard.offsets.by_group, **shard.offsets.pending.open}):
        for suffixes in _steps(shard, group_id):
            yield Outcome(
                _deleted_topic_offsets(shard, group_id, suffixes, deleted), is_atomic=False
            )


def _deleted_topic_offsets(
    shard: GroupShard, group_id: str, suffixes: list[bytes], deleted: Mapping[str, bytes]
) -> list[CoordinatorRecord]:
    prefix = group_prefix(group_id)
    offsets = shard.offsets.by_group.get(group_id, {})
    records: list[CoordinatorRecord] = []
    for suffix in suffixes:
        topic, _ = read_partition_suffix(suffix)
        value = offsets.get(suffix)
        is_pending = shard.offsets.pending.is_open(group_id, suffix)
        if topic not in deleted or (value is None and not is_pending):
            continue
        # The commit may be for a new topic of the same name.
        if value is None or decode_committed_offset(value).topic_id in {ZERO_UUID, deleted[topic]}:
            records.append(CoordinatorRecord(prefix + suffix, None))
    return records


def _sweep_group(shard: GroupShard, group_id: str, wall_ms: int) -> Iterator[Outcome]:
    # Looked up again, because the group may change between steps.
    for suffixes in _steps(shard, group_id):
        expiry = _expiry(shard, group_id)
        if expiry is None:
            return
        yield Outcome(_expired(shard, group_id, expiry, suffixes, wall_ms), is_atomic=False)
    offsets = shard.offsets
    is_unused = group_id not in offsets.by_group and group_id not in offsets.pending.open
    if is_unused and _expiry(shard, group_id) is not None and shard.groups[group_id].is_empty:
        yield Outcome(shard.groups[group_id].tombstones())


def _expiry(shard: GroupShard, group_id: str) -> OffsetExpiry | None:
    group = shard.groups.get(group_id)
    return None if group is None else group.offset_expiry


def _expired(
    shard: GroupShard, group_id: str, expiry: OffsetExpiry, suffixes: list[bytes], wall_ms: int
) -> list[CoordinatorRecord]:
    group = shard.groups[group_id]
    prefix = group_prefix(group_id)
    offsets = shard.offsets.by_group.get(group_id, {})
    retention_ms = shard.settings.offsets_retention_ms
    records: list[CoordinatorRecord] = []
    for suffix in suffixes:
        topic, _ = read_partition_suffix(suffix)
        value = offsets.get(suffix)
        if value is None or group.is_subscribed_to(topic):
            continue
        if shard.offsets.pending.is_open(group_id, suffix):
            continue
        committed = decode_committed_offset(value)
        if _is_expired(expiry, committed, wall_ms=wall_ms, retention_ms=retention_ms):
            records.append(CoordinatorRecord(prefix + suffix, None))
    return records


def _is_expired(
    expiry: OffsetExpiry, committed: CommittedOffset, *, wall_ms: int, retention_ms: int
) -> bool:
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return wall_ms >= committed.expire_timestamp_ms
    since_ms = committed.commit_timestamp_ms if expiry.since_ms is None else expiry.since_ms
    return wall_ms - since_ms >= retention_ms


def _steps(shard: GroupShard, group_id: str) -> Iterator[list[bytes]]:
    offsets = shard.offsets
    pending = offsets.pending.open.get(group_id, {})
    suffixes = list({**offsets.by_group.get(group_id, {}), **pending})
    for start in range(0, len(suffixes), _STEP):
        yield suffixes[start : start + _STEP]
