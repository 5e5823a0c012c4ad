"""Topics of large groups, hashed in steps before an operation needs their hashes.

The hash of a topic takes some microseconds. A group may subscribe to thousands of topics that are
not hashed: when it is new, was just loaded, or many of its topics have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.subscriptions import NO_TOPICS

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.topic_hashes import Names

# Topics that an operation itself may hash: about 2 ms.
_FEW: Final = 500


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
    count = len(names)
    is_checked = True
    if isinstance(group, ConsumerGroup):
        is_checked = group.checked_topics is shard.image.topics
        count += 0 if is_checked else group.subscriptions.topic_count
    if count <= _FEW:
        return NO_TOPICS
    topics: Names = set(names)
    if not is_checked:
        assert isinstance(group, ConsumerGroup)
        topics |= group.subscriptions.topics()
    unknown = shard.topic_hashes.unknown(topics)
    return unknown if len(unknown) > _FEW else NO_TOPICS


def look_up(shard: ServingShard, group_id: str) -> Steps[None]:
    """Hash the topics of a group."""
    yield
    yield from shard.topic_hashes.add(unhashed(shard, group_id))


def on_loaded(shard: ServingShard) -> list[HashTopics]:
    """Return the effects of large groups after a load."""
    return [
        HashTopics(group.group_id)
        for group in shard.groups.values()
        if isinstance(group, ConsumerGroup) and group.subscriptions.topic_count > _FEW
    ]
