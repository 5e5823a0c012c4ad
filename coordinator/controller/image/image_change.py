"""The differences between two images, down to single partitions and configs.

Subscribers get it with the new image, so that the cost of a change does not depend on the cluster's
size.

Source: Kafka's org.apache.kafka.image (TopicsDelta, ConfigurationsDelta, ClusterDelta).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.acls import AclEntry  # noqa: TC001 - tuples look for it
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_CONFIGS,
    BrokerImage,
    ConfigKey,
    PartitionImage,
    TopicImage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.quotas.quota_entity import QuotaEntity

# Partitions between two yields: 0.1 ms.
_STEP = 256


class PartitionChange(NamedTuple):
    """A new or changed partition."""

    before: PartitionImage | None  # None: new
    after: PartitionImage


@dataclass(slots=True)
class TopicChange:
    """An existing topic that is new or has new or changed partitions."""

    name: str
    topic_id: bytes
    is_new: bool
    partitions: dict[int, PartitionChange] = field(default_factory=dict[int, PartitionChange])


class ConfigChange(NamedTuple):
    """A change of one config; None: not set."""

    before: str | None
    after: str | None


class AclChange(NamedTuple):
    """A change of one rule; None: no rule."""

    before: AclEntry | None
    after: AclEntry | None


class BrokerChange(NamedTuple):
    """A change of a broker's registration; None: not registered."""

    before: BrokerImage | None
    after: BrokerImage | None


@dataclass(slots=True)
class ImageChange:
    """The differences between two images."""

    # In their earlier state; a topic that was created again is also in `topics`.
    deleted: list[TopicImage] = field(default_factory=list[TopicImage])
    topics: dict[bytes, TopicChange] = field(default_factory=dict[bytes, TopicChange])
    # By resource and config name, including deleted topics.
    configs: dict[ConfigKey, dict[str, ConfigChange]] = field(
        default_factory=dict[ConfigKey, dict[str, ConfigChange]]
    )
    acls: dict[bytes, AclChange] = field(default_factory=dict[bytes, AclChange])
    brokers: dict[int, BrokerChange] = field(default_factory=dict[int, BrokerChange])
    quotas: set[QuotaEntity] = field(default_factory=set["QuotaEntity"])
    # Finalized levels before and after; 0: none.
    features: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def created(self) -> set[str]:
        """Names of new topics."""
        return {topic.name for topic in self.topics.values() if topic.is_new}

    @property
    def changed(self) -> set[str]:
        """Names of existing topics with new or changed partitions."""
        return {topic.name for topic in self.topics.values() if not topic.is_new}

    def partitions(self) -> Iterator[tuple[TopicChange, PartitionChange]]:
        """Iterate over new and changed partitions."""
        for topic in self.topics.values():
            for partition in topic.partitions.values():
                yield topic, partition


def change_between(before: ClusterImage, after: ClusterImage) -> ImageChange:
    """Return the changes of topics, configs, ACLs and quotas."""
    return in_one_go(compare_images(before, after))


def compare_images(before: ClusterImage, after: ClusterImage) -> Steps[ImageChange]:
    """Do as `change_between`, in steps."""
    change = ImageChange()
    change.deleted = [
        topic for topic in before.topics.values() if topic.topic_id not in after.topics_by_id
    ]
    for topic in after.topics.values():
        old_topic = before.topics_by_id.get(topic.topic_id)
        if old_topic is not topic:
            change.topics[topic.topic_id] = yield from _topic_change(old_topic, topic)
            yield
    for key in (*before.configs, *(key for key in after.configs if key not in before.configs)):
        old, new = before.configs.get(key, NO_CONFIGS), after.configs.get(key, NO_CONFIGS)
        if old is not new and old != new:
            change.configs[key] = {
                name: ConfigChange(old.get(name), new.get(name))
                for name in (*old, *(name for name in new if name not in old))
                if old.get(name) != new.get(name)
            }
    if before.acls is not after.acls:
        change.acls = {
            acl_id: AclChange(before.acls.get(acl_id), after.acls.get(acl_id))
            for acl_id in (
                *before.acls,
                *(acl_id for acl_id in after.acls if acl_id not in before.acls),
            )
            if before.acls.get(acl_id) != after.acls.get(acl_id)
        }
    if before.client_quotas is not after.client_quotas:
        change.quotas = {
            entity
            for entity in (*before.client_quotas, *after.client_quotas)
            if before.client_quotas.get(entity) != after.client_quotas.get(entity)
        }
    return change


def _topic_change(before: TopicImage | None, after: TopicImage) -> Steps[TopicChange]:
    partitions: dict[int, PartitionChange] = {}
    for count, partition in enumerate(after.partitions.values(), 1):
        if count % _STEP == 0:
            yield
        old_partition = None if before is None else before.partitions.get(partition.index)
        if old_partition is not partition:
            partitions[partition.index] = PartitionChange(old_partition, partition)
    return TopicChange(after.name, after.topic_id, before is None, partitions)
