"""The interface of a shard for streams groups; the shard itself imports this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.consumer.topic_hashes import TopicHashes
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.settings import GroupSettings
    from wirebroker.coordinator.outcome import Timers


class StreamsShard(Protocol):
    """A shard with groups of any kind."""

    groups: dict[str, Group]
    image: ClusterImage
    settings: GroupSettings
    timers: Timers
    topic_hashes: TopicHashes
