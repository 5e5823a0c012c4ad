"""Committed offsets, stored as in the log and decoded on demand: most are never requested.

    group id -> topic and partition (the end of the record's key) -> value of the record

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

if TYPE_CHECKING:
    from collections.abc import Iterator


class GroupOffsets:
    """The committed offsets of all groups of a shard."""

    __slots__ = ("by_group", "count", "pending")

    def __init__(self) -> None:
        # No empty inner dicts.
        self.by_group: dict[str, dict[bytes, bytes]] = {}
        self.count = 0
        self.pending = PendingOffsets()

    def put(self, group_id: str, suffix: bytes, value: bytes) -> None:
        """Add an effective commit."""
        self.pending.overtake(group_id, suffix)
        self._store(group_id, suffix, value)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Make the offsets of a transaction effective, or drop them."""
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
        """Return a committed offset."""
        value = self.by_group.get(group_id, {}).get(partition_suffix(topic, partition))
        return None if value is None else decode_committed_offset(value)

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether there is an effective or pending offset."""
        suffix = partition_suffix(topic, partition)
        is_committed = suffix in self.by_group.get(group_id, ())
        return is_committed or self.pending.is_open(group_id, suffix)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction may change an offset."""
        pending = self.pending
        return bool(pending.open) and pending.is_open(group_id, partition_suffix(topic, partition))

    def of_group(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield (topic, partition, committed offset) of a group."""
        for suffix, value in self.by_group.get(group_id, {}).items():
            yield *read_partition_suffix(suffix), decode_committed_offset(value)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the tombstones of a group's offsets."""
        prefix = group_prefix(group_id)
        suffixes = {**self.by_group.get(group_id, {}), **self.pending.open.get(group_id, {})}
        return [CoordinatorRecord(prefix + suffix, None) for suffix in suffixes]


# Open transactions (KIP-98, KIP-447)

# Sequence number; the value, None if overtaken.
_Pending = tuple[int, "bytes | None"]


class PendingOffsets:
    """The pending offsets of a shard, by key suffix.

    `open[group][partition]` are the producers with pending offsets.
    """

    __slots__ = ("_count", "by_producer", "open")

    def __init__(self) -> None:
        # Producer id -> group -> partition; no empty inner dicts.
        self.by_producer: dict[int, dict[str, dict[bytes, _Pending]]] = {}
        self.open: dict[str, dict[bytes, set[int]]] = {}
        self._count = 0

    def put(self, producer_id: int, group_id: str, suffix: bytes, value: bytes) -> None:
        """Add a commit of a producer's transaction."""
        self._count += 1
        groups = self.by_producer.setdefault(producer_id, {})
        groups.setdefault(group_id, {})[suffix] = (self._count, value)
        self.open.setdefault(group_id, {}).setdefault(suffix, set()).add(producer_id)

    def is_open(self, group_id: str, suffix: bytes) -> bool:
        """Return whether a partition has a pending offset."""
        return bool(self.open) and suffix in self.open.get(group_id, ())

    def overtake(self, group_id: str, suffix: bytes) -> None:
        """Mark pending offsets as older than an effective commit."""
        if self.open:
            self._overtake(group_id, suffix, self._count)

    def remove(self, group_id: str, suffix: bytes) -> None:
        """Remove the pending offsets of a partition."""
        producers = self.open.get(group_id, {}).get(suffix, ())
        for producer_id in tuple(producers):
            del self.by_producer[producer_id][group_id][suffix]
            self._prune(producer_id, group_id)
            self._close(producer_id, group_id, suffix)

    def end(self, producer_id: int, *, is_commit: bool) -> Iterator[tuple[str, bytes, bytes]]:
        """End a transaction; yield (group, partition, value) of effective offsets."""
        for group_id, pending in self.by_producer.pop(producer_id, {}).items():
            partitions = self.open[group_id]
            for suffix, (order, value) in pending.items():
                # Inlined, since there may be 10,000.
                producers = partitions[suffix]
                producers.remove(producer_id)
                if not producers:
                    del partitions[suffix]
                if is_commit and value is not None:
                    if producers:
                        self._overtake(group_id, suffix, order)
                    yield group_id, suffix, value
            if not partitions:
                del self.open[group_id]

    def check(self) -> None:
        """Assert the invariants."""
        expected: dict[str, dict[bytes, set[int]]] = {}
        for producer_id, groups in self.by_producer.items():
            assert groups
            for group_id, pending in groups.items():
                assert pending
                for suffix in pending:
                    expected.setdefault(group_id, {}).setdefault(suffix, set()).add(producer_id)
        assert expected == self.open

    def _overtake(self, group_id: str, suffix: bytes, last: int) -> None:
        for producer_id in self.open.get(group_id, {}).get(suffix, ()):
            pending = self.by_producer[producer_id][group_id]
            order = pending[suffix][0]
            if order <= last:
                pending[suffix] = (order, None)

    def _close(self, producer_id: int, group_id: str, suffix: bytes) -> None:
        partitions = self.open[group_id]
        partitions[suffix].remove(producer_id)
        if not partitions[suffix]:
            del partitions[suffix]
            if not partitions:
                del self.open[group_id]

    def _prune(self, producer_id: int, group_id: str) -> None:
        groups = self.by_producer[producer_id]
        if not groups[group_id]:
            del groups[group_id]
            if not groups:
                del self.by_producer[producer_id]
