"""Requests to the share coordinators of other nodes.

One node gets one request of a kind at a time for each group. Later calls are joined into the next
request.

Source: Kafka's PersisterStateManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.share_state.errors import state_error
from wirebroker.coordinator.share_state.state import SharePartitionKey, StateError, StateWrite
from wirebroker.net.client.errors import (
    PeerError,
    RequestTimedOutError,
    UnsupportedVersionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wirebroker.net.client.node import Node
    from wirebroker.share.state_rpcs import Partition, StateRpc

logger = logging.getLogger(__name__)

# As in Kafka (socket.connection.setup.timeout.max.ms).
_TIMEOUT_S: Final = 30.0
# Partitions and batches after which a request is sent.
_MOST_AT_ONCE: Final = 500


class _Call(NamedTuple):
    """What one caller requests and waits for."""

    partitions: Mapping[Partition, Any]
    results: asyncio.Future[dict[Partition, Any]]


class _Queue:
    """The requests of one kind for one node."""

    __slots__ = ("by_group", "sender")

    def __init__(self) -> None:
        self.by_group: dict[str, list[_Call]] = {}
        # Runs while something is waiting.
        self.sender: asyncio.Task[None] | None = None


class RemoteStates:
    """The share coordinators of other nodes."""

    __slots__ = ("_find_node", "_is_stopped", "_queues")

    def __init__(self, find_node: Callable[[int], Node | None]) -> None:
        """Use the nodes that `find_node` returns."""
        self._find_node = find_node
        self._queues: dict[tuple[int, StateRpc], _Queue] = {}
        self._is_stopped = False

    def request(
        self, node_id: int, rpc: StateRpc, group_id: str, partitions: Mapping[Partition, Any]
    ) -> asyncio.Future[dict[Partition, Any]]:
        """Return a future of the results of partitions whose state a node stores."""
        results: asyncio.Future[dict[Partition, Any]] = asyncio.get_running_loop().create_future()
        call = _Call(partitions, results)
        if self._is_stopped:
            _fail(call, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return results
        queue = self._queues.setdefault((node_id, rpc), _Queue())
        queue.by_group.setdefault(group_id, []).append(call)
        if queue.sender is None:
            queue.sender = asyncio.create_task(
                self._send_all(node_id, rpc, queue), name=f"{rpc.name} of node {node_id}"
            )
        return results

    async def stop(self) -> None:
        """Cancel all requests; their callers get COORDINATOR_NOT_AVAILABLE."""
        self._is_stopped = True
        senders = [queue.sender for queue in self._queues.values() if queue.sender is not None]
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)

    async def _send_all(self, node_id: int, rpc: StateRpc, queue: _Queue) -> None:
        unsent: dict[str, list[_Call]] = {}
        try:
            while queue.by_group:
                unsent, queue.by_group = queue.by_group, {}
                requests = [
                    self._send(node_id, rpc, group_id, joined)
                    for group_id, waiting in unsent.items()
                    for joined in _without_repetitions(waiting)
                ]
                await asyncio.gather(*requests)
        finally:
            for waiting in (*unsent.values(), *queue.by_group.values()):
                for call in waiting:
                    _fail(call, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            del self._queues[node_id, rpc]

    async def _send(self, node_id: int, rpc: StateRpc, group_id: str, joined: list[_Call]) -> None:
        results: dict[Partition, Any] = {}
        failure: StateError | None = None
        try:
            for partitions in _in_portions(joined):
                results.update(await self._results(node_id, rpc, group_id, partitions))
        except PeerError as error:
            logger.info("%s of group %s at node %d failed: %s", rpc.name, group_id, node_id, error)
            failure = state_error(_code_of(error))
        except Exception:  # each call must get its result
            logger.exception("%s of group %s at node %d failed", rpc.name, group_id, node_id)
        for call in joined:
            if not call.results.done():
                call.results.set_result(
                    {
                        partition: results[partition]
                        if partition in results
                        else failure or _missing(rpc, group_id, partition)
                        for partition in call.partitions
                    }
                )

    async def _results(
        self, node_id: int, rpc: StateRpc, group_id: str, partitions: Mapping[Partition, Any]
    ) -> dict[Partition, Any]:
        node = self._find_node(node_id)
        if node is None:
            return dict.fromkeys(partitions, state_error(ErrorCode.NETWORK_EXCEPTION))
        response = await node.request(
            rpc.key, rpc.request(group_id, partitions), timeout_s=_TIMEOUT_S
        )
        return rpc.results(response)


def _in_portions(joined: list[_Call]) -> Iterator[dict[Partition, Any]]:
    """Yield the partitions of calls in portions that are encoded and decoded quickly."""
    portion: dict[Partition, Any] = {}
    size = 0
    for call in joined:
        for partition, data in call.partitions.items():
            portion[partition] = data
            size += 1 + (len(data.batches) if isinstance(data, StateWrite) else 0)
            if size >= _MOST_AT_ONCE:
                yield portion
                portion, size = {}, 0
    if portion:
        yield portion


def _without_repetitions(waiting: list[_Call]) -> list[list[_Call]]:
    """Return the calls in lists, each without a repeated partition."""
    joined: list[tuple[set[Partition], list[_Call]]] = []
    for call in waiting:
        for partitions, calls in joined:
            if partitions.isdisjoint(call.partitions):
                partitions.update(call.partitions)
                calls.append(call)
                break
        else:
            joined.append(({*call.partitions}, [call]))
    return [calls for _, calls in joined]


def _missing(rpc: StateRpc, group_id: str, partition: Partition) -> StateError:
    key = SharePartitionKey(group_id, *partition)
    verb = rpc.name.removesuffix(" summary").removesuffix(" state")
    message = f"Failed to {verb} state for share partition: {key}"
    return StateError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def _code_of(error: PeerError) -> ErrorCode:
    if isinstance(error, UnsupportedVersionError):
        return ErrorCode.UNSUPPORTED_VERSION
    if isinstance(error, RequestTimedOutError):
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NETWORK_EXCEPTION


def _fail(call: _Call, code: ErrorCode) -> None:
    if not call.results.done():
        call.results.set_result(dict.fromkeys(call.partitions, state_error(code)))
