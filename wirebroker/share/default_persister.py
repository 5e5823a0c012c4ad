"""The persister that stores states with the share coordinators of the cluster.

A request for several partitions is split by coordinator. Partitions whose coordinator cannot serve
them, or is not known, are tried again with growing delays, sooner if leaderships change.

Source: Kafka's DefaultStatePersister, PersisterStateManager.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE, partition_for
from wirebroker.coordinator.share_state.errors import message_of
from wirebroker.coordinator.share_state.state import SharePartitionKey, StateError
from wirebroker.share.no_op_persister import NoOpPersister
from wirebroker.share.state_rpcs import DELETE, INITIALIZE, READ, READ_SUMMARY, WRITE
from wirebroker.share.state_writes import parts_of
from wirebroker.share.stored_states import perform

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from random import Random

    from wirebroker.base.clock import Clock
    from wirebroker.coordination.share_coordinator import ShareCoordinator
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.share_state.state import PersistedState, StateSummary
    from wirebroker.share.persister import StateWrite
    from wirebroker.share.remote_states import RemoteStates
    from wirebroker.share.state_rpcs import Partition, StateRpc

_FIRST_DELAY_S: Final = 1.0
_LONGEST_DELAY_S: Final = 30.0
_JITTER: Final = 0.2
_MOST_ATTEMPTS: Final = 5
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
# Results of partitions without a known coordinator.
_LOST: Final = StateError(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, message_of(ErrorCode.COORDINATOR_NOT_AVAILABLE)
)


class DefaultPersister:
    """A Persister that uses share coordinators; without share groups it stores nothing."""

    __slots__ = (
        "_clock",
        "_coordinator",
        "_image",
        "_is_stopped",
        "_moved",
        "_no_op",
        "_node_id",
        "_random",
        "_remote",
    )

    def __init__(
        self,
        node_id: int,
        coordinator: ShareCoordinator,
        remote: RemoteStates,
        *,
        image: ClusterImage,
        clock: Clock,
        random: Random,
    ) -> None:
        """Use this node's coordinator and those of other nodes."""
        self._node_id = node_id
        self._coordinator = coordinator
        self._remote = remote
        self._image = image
        self._clock = clock
        self._random = random
        self._no_op = NoOpPersister()
        # Set when share coordinators have moved; a new one for each wait.
        self._moved = asyncio.Event()
        self._is_stopped = False

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Note a metadata change that this node's coordinator has applied."""
        self._image = image
        topic = image.topics.get(SHARE_GROUP_STATE)
        if topic is not None and topic.topic_id in change.topics:
            self._wake()

    async def stop(self) -> None:
        """Fail what still waits."""
        self._is_stopped = True
        self._wake()
        await self._remote.stop()

    async def initialize(
        self, group_id: str, partitions: Mapping[Partition, tuple[int, int]]
    ) -> dict[Partition, StateError | None]:
        """See Persister."""
        if not self._coordinator.is_enabled:
            return await self._no_op.initialize(group_id, partitions)
        return await self._perform(INITIALIZE, group_id, partitions)

    async def read(
        self, group_id: str, partitions: Mapping[Partition, int]
    ) -> dict[Partition, PersistedState | StateError]:
        """See Persister."""
        if not self._coordinator.is_enabled:
            return await self._no_op.read(group_id, partitions)
        return await self._perform(READ, group_id, partitions)

    async def write(
        self, group_id: str, partitions: Mapping[Partition, StateWrite]
    ) -> dict[Partition, StateError | None]:
        """See Persister."""
        if not self._coordinator.is_enabled:
            return await self._no_op.write(group_id, partitions)
        results: dict[Partition, StateError | None] = {}
        waiting = {partition: deque(parts_of(write)) for partition, write in partitions.items()}
        while waiting:
            parts = {partition: of.popleft() for partition, of in waiting.items()}
            results.update(await self._perform(WRITE, group_id, parts))
            waiting = {
                partition: of
                for partition, of in waiting.items()
                if of and results[partition] is None
            }
        return results

    async def delete(
        self, group_id: str, partitions: Collection[Partition]
    ) -> dict[Partition, StateError | None]:
        """See Persister."""
        if not self._coordinator.is_enabled:
            return await self._no_op.delete(group_id, partitions)
        return await self._perform(DELETE, group_id, dict.fromkeys(partitions))

    async def read_summary(
        self, group_id: str, partitions: Mapping[Partition, int]
    ) -> dict[Partition, StateSummary | StateError]:
        """See Persister."""
        if not self._coordinator.is_enabled:
            return await self._no_op.read_summary(group_id, partitions)
        return await self._perform(READ_SUMMARY, group_id, partitions)

    async def _perform(
        self, rpc: StateRpc, group_id: str, partitions: Mapping[Partition, Any]
    ) -> dict[Partition, Any]:
        results: dict[Partition, Any] = dict.fromkeys(partitions)
        waiting = dict(partitions)
        attempts = 0
        while True:
            tried = await self._try(rpc, group_id, waiting)
            results.update(tried)
            waiting = {
                partition: waiting[partition]
                for partition, result in tried.items()
                if isinstance(result, StateError) and result.code in _RETRIABLE
            }
            if not waiting or self._is_stopped:
                break
            attempts += 1
            if attempts == _MOST_ATTEMPTS:
                break
            if await self._pause(attempts):
                attempts -= 1
        return {
            partition: _failed(rpc, result, is_exhausted=partition in waiting)
            for partition, result in results.items()
        }

    async def _try(
        self, rpc: StateRpc, group_id: str, waiting: Mapping[Partition, Any]
    ) -> dict[Partition, Any]:
        """Ask each coordinator once."""
        by_node: dict[int, dict[Partition, Any]] = {}
        slices = Slices(self._clock)
        for partition, data in waiting.items():
            node_id = self._node_of(SharePartitionKey(group_id, *partition))
            by_node.setdefault(node_id, {})[partition] = data
            await slices.turn()
        results: dict[Partition, Any] = dict.fromkeys(by_node.pop(NO_LEADER, {}), _LOST)
        if results and SHARE_GROUP_STATE not in self._image.topics:
            self._coordinator.create_topic()
        own = by_node.pop(self._node_id, {})
        asked = [
            self._remote.request(node_id, rpc, group_id, entries)
            for node_id, entries in by_node.items()
        ]
        results.update(await perform(self._coordinator, rpc, group_id, own.items(), self._clock))
        for answered in asked:
            results.update(await answered)
        return results

    def _node_of(self, key: SharePartitionKey) -> int:
        """Return the node that leads the partition of the topic for a key."""
        topic = self._image.topics.get(SHARE_GROUP_STATE)
        if topic is None:
            return NO_LEADER
        partition = topic.partitions.get(partition_for(str(key), len(topic.partitions)))
        return NO_LEADER if partition is None else partition.leader

    async def _pause(self, attempts: int) -> bool:
        """Wait before the next attempt; return whether coordinators have moved before the end."""
        delay_s = min(_FIRST_DELAY_S * 2**attempts, _LONGEST_DELAY_S)
        delay_s *= self._random.uniform(1 - _JITTER, 1 + _JITTER)
        try:
            async with asyncio.timeout(min(delay_s, _LONGEST_DELAY_S)):
                await self._moved.wait()
        except TimeoutError:
            return False
        return True

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def _failed(rpc: StateRpc, result: Any, *, is_exhausted: bool) -> Any:
    """Return an error with Kafka's text, another result unchanged."""
    if not isinstance(result, StateError):
        return result
    if result is _LOST:
        text = "Error in find coordinator. "
        reason = "Exhausted max retries to find coordinator without success."
    else:
        text = f"Error in {rpc.name} RPC. "
        reason = f"Exhausted max retries to complete {rpc.name} RPC without success."
    return StateError(result.code, text + (reason if is_exhausted else result.message or ""))
