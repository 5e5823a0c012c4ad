"""The partitions of this node, by topic name and by topic id.

Source: Kafka's ReplicaManager.allPartitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.replica.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.replica_context import ReplicaContext
    from wirebroker.storage.log.log import Log

Partitions = Mapping[int, Partition]
_NONE: Partitions = {}


class PartitionRegistry:
    """The registry of this node's partitions."""

    __slots__ = ("_by_id", "_by_name", "_host")

    # _by_name and _by_id hold the same mappings.

    def __init__(self, host: ReplicaContext) -> None:
        self._host = host
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def find(self, name: str, topic_id: bytes, *, by_id: bool) -> tuple[Partitions, ErrorCode]:
        """Return a topic's partitions by index, and the error for an index that is missing."""
        if by_id:
            partitions = self._by_id.get(topic_id)
            if partitions is None:
                return _NONE, ErrorCode.UNKNOWN_TOPIC_ID
            return partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._by_name.get(name, _NONE), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def of(self, topic: str) -> Partitions:
        """Return a topic's partitions by index."""
        return self._by_name.get(topic, _NONE)

    def add(self, log: Log, topic: TopicImage, directory: DataDirectory) -> Partition:
        """Create and register the partition of a log; it has no role yet."""
        partition = Partition(log, directory=directory, host=self._host)
        partitions = self._by_name.get(topic.name)
        if partitions is None:
            partitions = self._by_name[topic.name] = {}
            self._by_id[topic.topic_id] = partitions
        assert partition.index not in partitions, f"{partition} already exists"
        partitions[partition.index] = partition
        directory.partitions.add(partition)
        return partition

    def remove(self, partition: Partition) -> None:
        """Remove a partition."""
        del self._by_id[partition.topic_id][partition.index]

    def remove_topic(self, topic: TopicImage) -> Collection[Partition]:
        """Remove a topic and return its partitions."""
        partitions = self._by_id.pop(topic.topic_id, None)
        if partitions is None:
            return ()
        del self._by_name[topic.name]
        return partitions.values()
