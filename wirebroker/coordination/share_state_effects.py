"""The share state of new partitions of share groups: created by the persister, then noted.

The result is noted by an operation of the group's shard, and dropped if the shard was unloaded in
the meantime.

Source: Kafka's GroupCoordinatorService.persisterInitialize, handlePersisterInitializeResponse.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from wirebroker.base.clock import Slices
from wirebroker.base.log_bound import about_group
from wirebroker.coordinator.groups.share import share_initialization

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.coordinator.groups.share.share_initialization import InitializeShareState
    from wirebroker.coordinator.share_state.state import StateError
    from wirebroker.engine.engine import Engine

logger = logging.getLogger(__name__)


class StateInitializer(Protocol):
    """The part of a Persister that groups need; the room of persisters imports this one."""

    async def initialize(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], tuple[int, int]]
    ) -> dict[tuple[bytes, int], StateError | None]:
        """See Persister."""
        ...


class ShareStateEffects:
    """The creation of share state for the groups of this node."""

    __slots__ = ("_clock", "_persister")

    def __init__(self, clock: Clock, persister: Callable[[], StateInitializer] | None) -> None:
        """Have what `persister` returns create states; None: share groups are not served."""
        self._clock = clock
        self._persister = persister

    async def initialize(self, engine: Engine[GroupShard], effect: InitializeShareState) -> None:
        """Have the persister create the state of new partitions; note the result."""
        assert self._persister is not None, "groups have a persister before they are served"
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        wanted = await slices.run(_state_of(effect))
        results = await self._persister().initialize(effect.group_id, wanted)
        error = next((error for error in results.values() if error is not None), None)
        if error is not None:
            logger.error(
                "share group %s: cannot initialize its share state (%s); a heartbeat retries",
                effect.group_id,
                error.message or error.code.name,
                extra=about_group(effect.group_id),
            )
        partitions = {topic_id: indexes for topic_id, (indexes, _) in effect.topics.items()}
        done = share_initialization.initialized if error is None else share_initialization.failed
        if not engine.is_closed:
            engine.run(done, effect.group_id, partitions)


def _state_of(
    effect: InitializeShareState,
) -> Steps[dict[tuple[bytes, int], tuple[int, int]]]:
    """Return the state epoch and the start offset of each partition."""
    wanted: dict[tuple[bytes, int], tuple[int, int]] = {}
    for topic_id, (indexes, start_offset) in effect.topics.items():
        for index in indexes:
            wanted[topic_id, index] = effect.state_epoch, start_offset
            yield
    return wanted
