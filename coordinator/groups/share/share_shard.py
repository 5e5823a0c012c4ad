"""The interface of a shard for share groups; the shard itself imports this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.consumer.topic_hashes import TopicHashes
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.settings import GroupSettings
    from wirebroker.coordinator.outcome import Timers


class ShareShard(Protocol):
    """A shard with groups of any kind."""

    groups: dict[str, Group]
    image: ClusterImage
    settings: GroupSettings
    timers: Timers
    topic_hashes: TopicHashes


def metadata_hash(shard: ShareShard, names: Iterable[str]) -> int:
    """Return the hash of the existing topics among those that a group subscribes to."""
    return shard.topic_hashes.of_group(set(names))
