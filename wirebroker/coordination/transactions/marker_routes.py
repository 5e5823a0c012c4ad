"""Where the markers of a transaction go: to whoever the metadata says leads the partition.

    the metadata says          the marker
    no such partition          is not needed any more: deleted
    this node leads            is written here, if its log is open and no role is on its way
    another node leads         is sent there (WriteTxnMarkers)
    nobody leads               waits for somebody who does

That a partition is not held here says nothing: only the metadata knows what is deleted.

Source: Kafka's TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.coordinator.outcome import Marker
    from wirebroker.coordinator.transactions.metadata import TopicPartition
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager


class MarkerSender(Protocol):
    """Has other nodes write markers."""

    async def send(
        self, node_id: int, marker: Marker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Have a node write a marker into partitions that it leads; return how each fared.

        One that is missing from the answer, or has an error that another try may mend, is tried
        again by the caller.
        """
        ...


class NoOtherNodes:
    """Stands in where no other node can be reached: who leads elsewhere is waited for."""

    async def send(
        self, node_id: int, marker: Marker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Say that it cannot be done now."""
        del node_id, marker
        return dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class MarkerRoutes:
    """What the metadata says of the partitions of transactions."""

    __slots__ = ("_replicas", "sender")

    def __init__(self, replicas: ReplicaManager, sender: MarkerSender | None = None) -> None:
        self._replicas = replicas
        self.sender: MarkerSender = sender or NoOtherNodes()

    def is_deleted(self, topic: str, index: int) -> bool:
        """Tell whether there is no such partition (any more)."""
        return self._replicas.image.partition(topic, index) is None

    def here(self, topic: str, index: int) -> Partition | None:
        """Return the partition if this node leads it and has its log."""
        partitions, _ = self._replicas.find(topic, b"", by_id=False)
        partition = partitions.get(index)
        return partition if partition is not None and partition.is_leader else None

    def is_held(self, topic: str, index: int) -> bool:
        """Tell whether this node holds the partition, on a disk that has not failed."""
        partitions, _ = self._replicas.find(topic, b"", by_id=False)
        partition = partitions.get(index)
        return partition is not None and partition.directory.is_online

    def elsewhere(self, topic: str, index: int) -> int | None:
        """Return the node that leads a partition if it is another one."""
        image = self._replicas.image.partition(topic, index)
        if image is None or image.leader in {NO_LEADER, self._replicas.node_id}:
            return None
        return image.leader
