"""Offsets that were committed in transactions, until those end (KIP-98, KIP-447).

A pending offset hides nothing: OffsetFetch gives what was committed before, or says that it is not
stable, if it is asked to. When the transaction is committed its offsets count, except for those
that were overtaken by what was committed later and counts already.

Laws: open[group][partition] are the producers with something pending there; the last record wins,
not the last marker, since compaction keeps the last record.

Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# When it came, among all that came here; the value, None if it was overtaken.
_Pending = tuple[int, "bytes | None"]


class PendingOffsets:
    """The pending offsets of a shard. Partitions go by the suffix of their key (GroupOffsets)."""

    __slots__ = ("_count", "by_producer", "open")

    def __init__(self) -> None:
        # Producer id -> group -> partition. No inner dict is empty.
        self.by_producer: dict[int, dict[str, dict[bytes, _Pending]]] = {}
        self.open: dict[str, dict[bytes, set[int]]] = {}
        self._count = 0

    def put(self, producer_id: int, group_id: str, suffix: bytes, value: bytes) -> None:
        """Take over a commit in a producer's transaction."""
        self._count += 1
        groups = self.by_producer.setdefault(producer_id, {})
        groups.setdefault(group_id, {})[suffix] = (self._count, value)
        self.open.setdefault(group_id, {}).setdefault(suffix, set()).add(producer_id)

    def is_open(self, group_id: str, suffix: bytes) -> bool:
        """Tell whether something is pending for a partition."""
        return bool(self.open) and suffix in self.open.get(group_id, ())

    def overtake(self, group_id: str, suffix: bytes) -> None:
        """Note a commit that counts at once: what is pending came before it."""
        if self.open:
            self._overtake(group_id, suffix, self._count)

    def remove(self, group_id: str, suffix: bytes) -> None:
        """Forget what is pending for a partition: it was deleted."""
        producers = self.open.get(group_id, {}).get(suffix, ())
        for producer_id in tuple(producers):
            del self.by_producer[producer_id][group_id][suffix]
            self._prune(producer_id, group_id)
            self._close(producer_id, group_id, suffix)

    def end(self, producer_id: int, *, is_commit: bool) -> Iterator[tuple[str, bytes, bytes]]:
        """End a transaction; yield (group, partition, value) of what counts now."""
        for group_id, pending in self.by_producer.pop(producer_id, {}).items():
            partitions = self.open[group_id]
            for suffix, (order, value) in pending.items():
                # Written out, because there may be 10,000 of them.
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
        """Assert the laws above."""
        found: dict[str, dict[bytes, set[int]]] = {}
        for producer_id, groups in self.by_producer.items():
            assert groups
            for group_id, pending in groups.items():
                assert pending
                for suffix in pending:
                    found.setdefault(group_id, {}).setdefault(suffix, set()).add(producer_id)
        assert found == self.open

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
