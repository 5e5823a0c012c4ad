"""Heartbeats of large groups: their topics are hashed in slices before the operation runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import response_of
from wirebroker.base.clock import Slices
from wirebroker.coordinator.groups.shard.topic_lookup import unhashed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.coordinator.groups.topic_hashes import Names

    Result = Mapping[str, Any] | Awaitable[Mapping[str, Any]]


def submit(
    broker: Broker, group_id: str, names: Collection[str], beat: Callable[[], Result]
) -> Result:
    """Run a heartbeat once the hashes of its topics are known.

    Args:
        broker: The broker.
        group_id: The member's group.
        names: The topics that the request subscribes to.
        beat: Submits the operation.
    """
    shard = broker.groups.shard_of(group_id)
    missing = None if shard is None else unhashed(shard, group_id, names)
    if shard is None or not missing:
        return beat()
    return _after_hashing(broker, shard, missing, beat)


async def _after_hashing(
    broker: Broker, shard: GroupShard, names: Names, beat: Callable[[], Result]
) -> Mapping[str, Any]:
    await Slices(broker.clock).run(shard.topic_hashes.add(names))
    return await response_of(beat())
