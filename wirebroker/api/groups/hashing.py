"""Prepares heartbeats of large groups and members in slices, because a heartbeat cannot pause.

Not compiled, because tests replace its constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.api.groups.group_errors import response_of
from wirebroker.base.clock import Slices
from wirebroker.coordinator.groups.shard.topic_lookup import is_unsorted, look_up, unhashed

ResultT = TypeVar("ResultT")

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps

    Result = Mapping[str, Any] | Awaitable[Mapping[str, Any]]


# Up to this number of topics, the heartbeat itself sorts and encodes them: 0.5 ms.
_FEW_NAMES: Final = 500


def has_many_names(body: Any) -> bool:
    """Return whether the topics of a heartbeat should be sorted and encoded before."""
    return len(body.subscribed_topic_names or ()) > _FEW_NAMES


async def in_slices(broker: Broker, steps: Steps[ResultT]) -> ResultT:
    """Run steps in slices of time and return their result."""
    return await Slices(broker.clock).run(steps)


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
    await in_slices(broker, steps)
    return await response_of(beat())
