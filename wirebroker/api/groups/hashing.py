"""Heartbeats of large groups: their topics are hashed and sorted in slices before they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import response_of
from wirebroker.base.clock import Slices
from wirebroker.coordinator.groups.shard.topic_lookup import is_unsorted, look_up, unhashed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps

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
    if shard is None or not (unhashed(shard, group_id, names) or is_unsorted(shard, group_id)):
        return beat()
    return _after_look_up(broker, look_up(shard, group_id, names), beat)


async def _after_look_up(
    broker: Broker, steps: Steps[None], beat: Callable[[], Result]
) -> Mapping[str, Any]:
    await Slices(broker.clock).run(steps)
    return await response_of(beat())
