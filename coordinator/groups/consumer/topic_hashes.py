"""Hashes of topics, kept as long as the topics do not change.

Source: Kafka's GroupMetadataManager.topicHashCache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.groups.metadata_hash import group_hash, topic_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, TopicImage


class TopicHashes:
    """The hashes of topics that groups subscribe to, by name."""

    __slots__ = ("_hashes",)

    def __init__(self) -> None:
        self._hashes: dict[str, tuple[TopicImage, int]] = {}

    def forget(self, names: Iterable[str]) -> None:
        """Drop deleted topics."""
        for name in names:
            self._hashes.pop(name, None)

    def of_group(self, names: Iterable[str], image: ClusterImage) -> int:
        """Return the hash of the existing topics among those that a group subscribes to."""
        hashes: dict[str, int] = {}
        for name in names:
            topic = image.topics.get(name)
            if topic is not None:
                hashes[name] = self._of_topic(topic, image)
        return group_hash(hashes)

    def _of_topic(self, topic: TopicImage, image: ClusterImage) -> int:
        known = self._hashes.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        value = topic_hash(topic.topic_id, topic.name, _racks(topic, image))
        self._hashes[topic.name] = topic, value
        return value


def _racks(topic: TopicImage, image: ClusterImage) -> list[list[str]]:
    """Return the racks of each partition's replicas."""
    return [
        [
            broker.rack
            for broker in map(image.brokers.get, topic.partitions[index].replicas)
            if broker is not None and broker.rack is not None
        ]
        for index in range(len(topic.partitions))
    ]
