"""The share partitions of this node by group and by partition.

Source: Kafka's SharePartitionCache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.share_partitions.share_partition import SharePhase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.coordinator.share_state.state import SharePartitionKey
    from wirebroker.replica.partition import Partition
    from wirebroker.share.leader_share import LeaderShare


class ShareCache:
    """Share partitions; those that are removed are fenced."""

    __slots__ = ("_by_group", "_by_partition", "_shares")

    # All three contain the same share partitions.

    def __init__(self) -> None:
        self._shares: dict[SharePartitionKey, LeaderShare] = {}
        self._by_group: dict[str, set[SharePartitionKey]] = {}
        self._by_partition: dict[Partition, set[SharePartitionKey]] = {}

    def __len__(self) -> int:
        return len(self._shares)

    def __iter__(self) -> Iterator[LeaderShare]:
        return iter(self._shares.values())

    def get(self, key: SharePartitionKey) -> LeaderShare | None:
        """Return a share partition."""
        return self._shares.get(key)

    def add(self, share: LeaderShare) -> None:
        """Add a share partition."""
        key = share.key
        assert key not in self._shares
        self._shares[key] = share
        self._by_group.setdefault(key.group_id, set()).add(key)
        self._by_partition.setdefault(share.partition, set()).add(key)

    def remove(self, share: LeaderShare) -> bool:
        """Remove and fence a share partition; return False if another one has its place."""
        key = share.key
        if self._shares.get(key) is not share:
            return False
        del self._shares[key]
        self._by_group[key.group_id].discard(key)
        if not self._by_group[key.group_id]:
            del self._by_group[key.group_id]
        self._by_partition[share.partition].discard(key)
        if not self._by_partition[share.partition]:
            del self._by_partition[share.partition]
        share.state.phase = SharePhase.FENCED
        share.wake()
        return True

    def remove_group(self, group_id: str) -> None:
        """Remove the share partitions of a group."""
        self._remove_all(self._by_group.get(group_id))

    def remove_partition(self, partition: Partition) -> None:
        """Remove the share partitions of a partition."""
        self._remove_all(self._by_partition.get(partition))

    def clear(self) -> None:
        """Remove all share partitions."""
        self._remove_all(set(self._shares))

    def _remove_all(self, keys: set[SharePartitionKey] | None) -> None:
        for key in tuple(keys or ()):
            self.remove(self._shares[key])
