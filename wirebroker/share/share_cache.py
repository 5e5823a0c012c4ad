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
        self._by_group: dict[str, dict[SharePartitionKey, None]] = {}
        self._by_partition: dict[Partition, dict[SharePartitionKey, None]] = {}

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
        self._by_group.setdefault(key.group_id, {})[key] = None
        self._by_partition.setdefault(share.partition, {})[key] = None

    def remove(self, share: LeaderShare) -> bool:
        """Remove and fence a share partition; return False if another one has its place."""
        key = share.key
        if self._shares.get(key) is not share:
            return False
        del self._shares[key]
        del self._by_group[key.group_id][key]
        if not self._by_group[key.group_id]:
            del self._by_group[key.group_id]
        del self._by_partition[share.partition][key]
        if not self._by_partition[share.partition]:
            del self._by_partition[share.partition]
        share.state.phase = SharePhase.FENCED
        share.wake()
        return True

    def of_group(self, group_id: str) -> list[LeaderShare]:
        """Return the share partitions of a group."""
        return [self._shares[key] for key in self._by_group.get(group_id, ())]

    def of_partition(self, partition: Partition) -> list[LeaderShare]:
        """Return the share partitions of a partition."""
        return [self._shares[key] for key in self._by_partition.get(partition, ())]
