"""Routes the markers of a transaction to the partition leaders in the metadata.

    no such partition      dropped: the partition was deleted
    this node leads        written here, once the role is entered and the log is open
    another node leads     sent there (WriteTxnMarkers)
    no leader              waits for one

An existing partition may not be loaded here yet, so only the metadata decides.

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
    """Sends markers to other nodes."""

    async def send(
        self, node_id: int, marker: Marker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Have a node write a marker into partitions that it leads; return their errors.

        The caller retries missing partitions and retriable errors.
        """
        ...


class NoOtherNodes:
    """A sender for a node without peers."""

    async def send(
        self, node_id: int, marker: Marker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return a retriable error for each partition."""
        del node_id, marker
        return dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class MarkerRoutes:
    """The routes in the current metadata."""

    __slots__ = ("_replicas", "sender")

    def __init__(self, replicas: ReplicaManager, sender: MarkerSender | None = None) -> None:
        self._replicas = replicas
        self.sender: MarkerSender = sender or NoOtherNodes()

    def is_deleted(self, topic: str, index: int) -> bool:
        """Return whether the metadata lacks a partition."""
        return self._replicas.image.partition(topic, index) is None

    def local_partition(self, topic: str, index: int) -> Partition | None:
        """Return the partition if this node leads it and has its log."""
        partitions, _ = self._replicas.find(topic, b"", by_id=False)
        partition = partitions.get(index)
        return partition if partition is not None and partition.is_leader else None

    def is_held(self, topic: str, index: int) -> bool:
        """Return whether this node has the partition online."""
        partitions, _ = self._replicas.find(topic, b"", by_id=False)
        partition = partitions.get(index)
        return partition is not None and partition.directory.is_online

    def elsewhere(self, topic: str, index: int) -> int | None:
        """Return the leader if it is another node."""
        image = self._replicas.image.partition(topic, index)
        if image is None or image.leader in {NO_LEADER, self._replicas.node_id}:
            return None
        return image.leader
