"""Topics of large groups, hashed in steps before an operation needs their hashes.

The hash of a topic takes some microseconds, and more with many partitions. A group may subscribe to
thousands of topics that are not hashed: when it is new, was just loaded, or many of its topics have
changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.topic_hashes import Names

# Groups that notice changes of their topics by hashes.
HashedGroup: TypeAlias = "ConsumerGroup | ShareGroup | StreamsGroup"
_KINDS: Final = (ConsumerGroup, ShareGroup, StreamsGroup)

# Topics that an operation itself may hash: about 2 ms.
_FEW: Final = 500
# Partitions whose hash takes as long as that of another topic.
_PARTITIONS_PER_TOPIC: Final = 16
_NO_TOPICS: Final[frozenset[str]] = frozenset()


class HashTopics(NamedTuple):
    """Effect: hash the topics of a group; see `look_up`."""

    group_id: str


def unhashed(shard: ServingShard, group_id: str, names: Collection[str] = ()) -> Names:
    """Return the topics that have to be hashed before a request; few count as none.

    Args:
        shard: The group's shard.
        group_id: The group.
        names: The topics that the request subscribes to.
    """
    group = shard.groups.get(group_id)
    unchecked = isinstance(group, _KINDS) and group.checked_topics is not shard.image.topics
    if isinstance(group, ConsumerGroup) and group.subscriptions.is_hashed(shard.topic_hashes):
        unchecked = False
    if not names and not unchecked:
        return _NO_TOPICS
    unknown = set(shard.topic_hashes.unknown(frozenset(names)))
    if unchecked:
        assert isinstance(group, _KINDS)
        unknown |= shard.topic_hashes.unknown(_topics_of(group))
    return _NO_TOPICS if _are_few(unknown, shard.image) else unknown


def _are_few(names: Names, image: ClusterImage) -> bool:
    if len(names) > _FEW:
        return False
    partitions = sum(len(image.topics[name].partitions) for name in names if name in image.topics)
    return len(names) + partitions // _PARTITIONS_PER_TOPIC <= _FEW


def _topics_of(group: HashedGroup) -> Names:
    if isinstance(group, ConsumerGroup):
        return group.subscriptions.topics()
    if isinstance(group, ShareGroup):
        return frozenset(group.topic_names)
    return _NO_TOPICS if group.topology is None else group.topology.required_topics


def is_unsorted(shard: ServingShard, group_id: str) -> bool:
    """Return whether the next request would sort many topics of a group."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup) or group.checked_topics is shard.image.topics:
        return False
    subscriptions = group.subscriptions
    return subscriptions.needs_sorting and not subscriptions.is_hashed(shard.topic_hashes)


def look_up(shard: ServingShard, group_id: str, names: Collection[str] = ()) -> Steps[None]:
    """Hash and sort the topics of a group, before a request that subscribes to `names`."""
    yield
    yield from shard.topic_hashes.add(unhashed(shard, group_id, names))
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and is_unsorted(shard, group_id):
        yield from group.subscriptions.sort_in_steps()


def on_loaded(shard: ServingShard) -> list[HashTopics]:
    """Return the effects of large groups after a load."""
    return [
        HashTopics(group.group_id)
        for group in shard.groups.values()
        if isinstance(group, _KINDS) and _count_of(group) > _FEW
    ]


def _count_of(group: HashedGroup) -> int:
    if isinstance(group, ConsumerGroup):
        return group.subscriptions.topic_count
    if isinstance(group, ShareGroup):
        return len(group.topic_names)
    return 0 if group.topology is None else len(group.topology.required_topics)
