"""Offsets committed in open transactions (KIP-98, KIP-447).

Pending offsets do not hide earlier ones: OffsetFetch returns those, or on request an error. When
the transaction commits, its offsets become effective, except those overtaken by later effective
commits. The order of records decides, not that of markers, since compaction keeps the last record.

Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Sequence number; the value, None if overtaken.
_Pending = tuple[int, "bytes | None"]


class PendingOffsets:
    """The pending offsets of a shard. Partitions are key suffixes (GroupOffsets).

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
        """Mark a partition's pending offsets as older than an effective commit."""
        if self.open:
            self._overtake(group_id, suffix, self._count)

    def remove(self, group_id: str, suffix: bytes) -> None:
        """Remove the pending offsets of a deleted partition."""
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
