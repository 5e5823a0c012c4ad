"""What differs between two images, down to single partitions and configs.

Whoever follows the metadata is told this with the image after it, so that following an ISR change
costs what one partition costs, however large the cluster is. Several changes to one thing within
one unit of records are one: `before` is what the image before it said.

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

# Partitions that are compared at a time: some 0.1 ms.
_STEP = 256


class PartitionChange(NamedTuple):
    """One partition that is new or has changed."""

    before: PartitionImage | None  # None: it is new
    after: PartitionImage


@dataclass(slots=True)
class TopicChange:
    """A topic that is there, and is new or has partitions that are new or changed."""

    name: str
    topic_id: bytes
    is_new: bool
    partitions: dict[int, PartitionChange] = field(default_factory=dict[int, PartitionChange])


class ConfigChange(NamedTuple):
    """One config of one resource; None where it is not set."""

    before: str | None
    after: str | None


class AclChange(NamedTuple):
    """One rule; None where there is none."""

    before: AclEntry | None
    after: AclEntry | None


class BrokerChange(NamedTuple):
    """One broker's registration; None where there is none."""

    before: BrokerImage | None
    after: BrokerImage | None


@dataclass(slots=True)
class ImageChange:
    """What differs between two images, named so that replicas and caches can follow."""

    # As they were before; a topic that was deleted and created again is in `topics`, too.
    deleted: list[TopicImage] = field(default_factory=list[TopicImage])
    # By topic id.
    topics: dict[bytes, TopicChange] = field(default_factory=dict[bytes, TopicChange])
    # By resource, then by the config's name; those of deleted topics as well.
    configs: dict[ConfigKey, dict[str, ConfigChange]] = field(
        default_factory=dict[ConfigKey, dict[str, ConfigChange]]
    )
    # By id.
    acls: dict[bytes, AclChange] = field(default_factory=dict[bytes, AclChange])
    brokers: dict[int, BrokerChange] = field(default_factory=dict[int, BrokerChange])
    # Entities whose quotas have changed.
    quotas: set[QuotaEntity] = field(default_factory=set["QuotaEntity"])
    # Finalized levels before and after; 0 is none.
    features: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def created(self) -> set[str]:
        """Return the names of topics that are new."""
        return {topic.name for topic in self.topics.values() if topic.is_new}

    @property
    def changed(self) -> set[str]:
        """Return the names of topics that stayed and have a partition that is new or changed."""
        return {topic.name for topic in self.topics.values() if not topic.is_new}

    def partitions(self) -> Iterator[tuple[TopicChange, PartitionChange]]:
        """Walk the partitions that are new or have changed."""
        for topic in self.topics.values():
            for partition in topic.partitions.values():
                yield topic, partition


def change_between(before: ClusterImage, after: ClusterImage) -> ImageChange:
    """Return what became of topics, configs, ACLs and quotas from one image to a later one."""
    return in_one_go(compare_images(before, after))


def compare_images(before: ClusterImage, after: ClusterImage) -> Steps[ImageChange]:
    """Do as `change_between`, with places where the work may be interrupted."""
    change = ImageChange()
    change.deleted = [
        topic for topic in before.topics.values() if topic.topic_id not in after.topics_by_id
    ]
    for topic in after.topics.values():
        known = before.topics_by_id.get(topic.topic_id)
        if known is not topic:
            change.topics[topic.topic_id] = yield from _topic_change(known, topic)
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
            for acl_id in (*before.acls, *(each for each in after.acls if each not in before.acls))
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
        held = None if before is None else before.partitions.get(partition.index)
        if held is not partition:
            partitions[partition.index] = PartitionChange(held, partition)
    return TopicChange(after.name, after.topic_id, before is None, partitions)
