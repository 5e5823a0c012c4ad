"""Committed offsets, stored as in the log and decoded on demand.

    group id -> topic and partition (the end of the record's key) -> value of the record

A partition of `__consumer_offsets` holds a million of them, mostly never requested
(coordinator/groups/README.md). The operations on them are in offsets.py and txn_offsets.py.

Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.coordinator_records import (
    CommittedOffset,
    CoordinatorRecord,
    decode_committed_offset,
    group_prefix,
    partition_suffix,
    read_partition_suffix,
)
from wirebroker.coordinator.groups.shard.pending_offsets import PendingOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator


class GroupOffsets:
    """The committed offsets of all groups of a shard."""

    __slots__ = ("by_group", "count", "pending")

    def __init__(self) -> None:
        # No empty inner dicts.
        self.by_group: dict[str, dict[bytes, bytes]] = {}
        self.count = 0
        # Commits of open transactions.
        self.pending = PendingOffsets()

    def put(self, group_id: str, suffix: bytes, value: bytes) -> None:
        """Add an effective commit."""
        self.pending.overtake(group_id, suffix)
        self._store(group_id, suffix, value)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Make the offsets of a producer's transaction effective, or drop them."""
        for group_id, suffix, value in self.pending.end(producer_id, is_commit=is_commit):
            self._store(group_id, suffix, value)

    def _store(self, group_id: str, suffix: bytes, value: bytes) -> None:
        offsets = self.by_group.get(group_id)
        if offsets is None:
            offsets = self.by_group[group_id] = {}
        before = len(offsets)
        offsets[suffix] = value
        self.count += len(offsets) - before

    def remove(self, group_id: str, suffix: bytes) -> None:
        """Apply a tombstone."""
        self.pending.remove(group_id, suffix)
        offsets = self.by_group.get(group_id)
        if offsets is not None and offsets.pop(suffix, None) is not None:
            self.count -= 1
            if not offsets:
                del self.by_group[group_id]

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return a group's committed offset for a partition."""
        value = self.by_group.get(group_id, {}).get(partition_suffix(topic, partition))
        return None if value is None else decode_committed_offset(value)

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether a group has an effective or pending offset for a partition."""
        suffix = partition_suffix(topic, partition)
        is_committed = suffix in self.by_group.get(group_id, ())
        return is_committed or self.pending.is_open(group_id, suffix)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction may change a partition's offset."""
        pending = self.pending
        return bool(pending.open) and pending.is_open(group_id, partition_suffix(topic, partition))

    def of_group(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield (topic, partition, committed offset) of a group."""
        for suffix, value in self.by_group.get(group_id, {}).items():
            yield *read_partition_suffix(suffix), decode_committed_offset(value)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the records that delete all offsets of a group."""
        prefix = group_prefix(group_id)
        suffixes = {**self.by_group.get(group_id, {}), **self.pending.open.get(group_id, {})}
        return [CoordinatorRecord(prefix + suffix, None) for suffix in suffixes]
