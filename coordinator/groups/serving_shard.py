"""The interface of a shard for the kinds of groups, whose folders the shard itself imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.settings import GroupSettings
    from wirebroker.coordinator.groups.topic_hashes import TopicHashes
    from wirebroker.coordinator.outcome import Timers


class ServingShard(Protocol):
    """A shard with groups of any kind."""

    groups: dict[str, Group]
    image: ClusterImage
    settings: GroupSettings
    timers: Timers
    topic_hashes: TopicHashes
    # Metadata offset of the last change that created topics.
    new_topics_offset: int

    def new_uuid(self) -> str:
        """See GroupShard."""
        ...
