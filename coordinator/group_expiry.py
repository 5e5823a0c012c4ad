"""Offsets and groups that nobody needs any more (KIP-211).

    group                          an offset expires ... after
    Empty, had members             ... the group became Empty
    no members ever (simple)       ... the commit
    Stable consumers               ... the commit, if no member reads the topic
    any other                      never

... by offsets.retention.minutes, unless the commit said when itself (Kafka before 2.1). A group
that is Empty and has no offsets left goes as well. The offsets of a deleted topic go at once.

Sweeps yield an outcome after each step, so that whoever runs them can serve others in between.

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
    group_tombstone,
    read_partition_suffix,
)
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.classic_group import NO_TIMESTAMP, ClassicGroup, GroupState
from wirebroker.coordinator.runtime import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.coordinator.groups import GroupShard

# Offsets looked at in one step: about 3 ms.
_STEP = 1_000


def sweep_expired(shard: GroupShard, wall_ms: int) -> Iterator[Outcome]:
    """Delete what has expired by `wall_ms`, step by step."""
    for group_id in list(shard.groups):
        yield from _sweep_group(shard, group_id, wall_ms)


def sweep_deleted_topics(shard: GroupShard, deleted: Mapping[str, bytes]) -> Iterator[Outcome]:
    """Delete the offsets of topics that are no more; `deleted` maps their names to their ids."""
    for group_id in list({**shard.offsets.by_group, **shard.offsets.pending.open}):
        for suffixes in _steps(shard, group_id):
            yield Outcome(_of_deleted(shard, group_id, suffixes, deleted), is_atomic=False)


def _of_deleted(
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
        # A topic of the same name may have been created again and read already.
        if value is None or decode_committed_offset(value).topic_id in {ZERO_UUID, deleted[topic]}:
            records.append(CoordinatorRecord(prefix + suffix, None))
    return records


def _sweep_group(shard: GroupShard, group_id: str, wall_ms: int) -> Iterator[Outcome]:
    for suffixes in _steps(shard, group_id):
        group = shard.groups.get(group_id)
        if group is None:
            return
        records = _expired(shard, group, suffixes, wall_ms)
        yield Outcome(records, is_atomic=False)
    group = shard.groups.get(group_id)
    offsets = shard.offsets
    is_unused = group_id not in offsets.by_group and group_id not in offsets.pending.open
    if group is not None and group.is_in(GroupState.EMPTY) and is_unused:
        yield Outcome([group_tombstone(group_id)])


def _expired(
    shard: GroupShard, group: ClassicGroup, suffixes: list[bytes], wall_ms: int
) -> list[CoordinatorRecord]:
    if not _may_expire(group):
        return []
    prefix = group_prefix(group.group_id)
    offsets = shard.offsets.by_group.get(group.group_id, {})
    retention_ms = shard.settings.offsets_retention_ms
    records: list[CoordinatorRecord] = []
    for suffix in suffixes:
        topic, _ = read_partition_suffix(suffix)
        value = offsets.get(suffix)
        if value is None or group.is_subscribed_to(topic):
            continue
        if shard.offsets.pending.is_open(group.group_id, suffix):
            continue
        committed = decode_committed_offset(value)
        if _is_expired(group, committed, wall_ms=wall_ms, retention_ms=retention_ms):
            records.append(CoordinatorRecord(prefix + suffix, None))
    return records


def _may_expire(group: ClassicGroup) -> bool:
    if group.protocol_type is None or group.is_in(GroupState.EMPTY):
        return True
    is_known = group.is_consumer_group and group.subscribed_topics is not None
    return is_known and group.is_in(GroupState.STABLE)


def _is_expired(
    group: ClassicGroup, committed: CommittedOffset, *, wall_ms: int, retention_ms: int
) -> bool:
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return wall_ms >= committed.expire_timestamp_ms
    since_ms = committed.commit_timestamp_ms
    had_members = group.protocol_type is not None and group.is_in(GroupState.EMPTY)
    if had_members and group.state_timestamp_ms != NO_TIMESTAMP:
        since_ms = group.state_timestamp_ms
    return wall_ms - since_ms >= retention_ms


def _steps(shard: GroupShard, group_id: str) -> Iterator[list[bytes]]:
    """Yield what a group has committed for, some at a time."""
    offsets = shard.offsets
    pending = offsets.pending.open.get(group_id, {})
    suffixes = list({**offsets.by_group.get(group_id, {}), **pending})
    for start in range(0, len(suffixes), _STEP):
        yield suffixes[start : start + _STEP]
