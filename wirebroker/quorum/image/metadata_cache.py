"""Cache of encoded topics of Metadata responses, because encoding 10,000 topics takes 50 ms.

An entry is valid while the topic's immutable image is the same object; a change of the brokers
clears the cache.

Source: Kafka's KRaftMetadataCache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.hot.metadata import PartitionView, TopicView, encode_topic
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from wirebroker.coordinator.controller.image.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.controller.image.image_change import ImageChange

# Each variant takes about 60 bytes per topic.
MAX_VARIANTS = 8

# The first version with LISTENER_NOT_FOUND.
_LISTENER_ERROR_VERSION = 6


class Variant(NamedTuple):
    """What an encoded topic depends on besides the topic."""

    version: int
    authorized_operations: int
    listener: str


class MetadataCache:
    """Encoded topics by variant and name."""

    __slots__ = ("_brokers", "_variants")

    def __init__(self) -> None:
        self._variants: dict[Variant, dict[str, tuple[TopicImage, bytes]]] = {}
        self._brokers: Mapping[int, BrokerImage] | None = None

    def find(self, image: ClusterImage, topic: TopicImage, variant: Variant) -> bytes | None:
        """Return the topic as an element of a Metadata response, if it is cached."""
        if image.brokers is not self._brokers:
            self._variants.clear()
            self._brokers = image.brokers
        topics = self._variants.get(variant)
        entry = None if topics is None else topics.get(topic.name)
        return entry[1] if entry is not None and entry[0] is topic else None

    def keep(
        self, image: ClusterImage, topic: TopicImage, variant: Variant, encoded: bytes
    ) -> None:
        """Store the result of `encode`."""
        if image.brokers is not self._brokers:
            return  # made from an old image
        topics = self._variants.get(variant)
        if topics is None:
            if len(self._variants) >= MAX_VARIANTS:
                self._variants.pop(next(iter(self._variants)))
            topics = self._variants[variant] = {}
        if len(topics) > 2 * len(image.topics) + 16:
            topics.clear()  # most belong to deleted topics
        topics[topic.name] = (topic, encoded)

    def follow(self, change: ImageChange) -> None:
        """Remove topics that were deleted or changed."""
        names = [topic.name for topic in change.deleted]
        names += [topic.name for topic in change.topics.values()]
        for topics in self._variants.values():
            for name in names:
                topics.pop(name, None)


def encode(image: ClusterImage, topic: TopicImage, variant: Variant) -> bytes:
    """Encode a topic as an element of a Metadata response; may run in a thread."""
    version, authorized_operations, listener = variant
    view = topic_view(
        image,
        topic,
        version=version,
        authorized_operations=authorized_operations,
        listener=listener,
    )
    return encode_topic(version, view)


def topic_view(
    image: ClusterImage,
    topic: TopicImage,
    *,
    version: int,
    authorized_operations: int,
    listener: str,
) -> TopicView:
    """Return a topic's Metadata fields for one listener."""
    return TopicView(
        topic.name,
        topic.topic_id,
        is_internal(topic.name),
        [
            _partition_view(image, partition, version=version, listener=listener)
            for partition in topic.partitions.values()
        ],
        ErrorCode.NONE,
        authorized_operations,
    )


def _partition_view(
    image: ClusterImage, partition: PartitionImage, *, version: int, listener: str
) -> PartitionView:
    brokers = image.brokers
    offline = tuple(
        node
        for node in partition.replicas
        if node not in brokers or brokers[node].fenced or listener not in brokers[node].endpoints
    )
    replicas, isr = partition.replicas, partition.isr
    if version == 0 and offline:
        replicas = tuple(node for node in replicas if node not in offline)
        isr = tuple(node for node in isr if node not in offline)
    error = ErrorCode.NONE
    leader = partition.leader
    if leader == NO_LEADER or leader not in brokers or brokers[leader].fenced:
        error, leader = ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
    elif listener not in brokers[leader].endpoints:
        has_listener_error = version >= _LISTENER_ERROR_VERSION
        error = (
            ErrorCode.LISTENER_NOT_FOUND if has_listener_error else ErrorCode.LEADER_NOT_AVAILABLE
        )
        leader = NO_LEADER
    elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return PartitionView(
        partition.index, leader, partition.leader_epoch, replicas, isr, offline, error
    )
