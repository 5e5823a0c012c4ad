"""Runs requests on this node's share coordinator, partition by partition.

Source: Kafka's ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Slices
from wirebroker.coordinator.share_state.state import SharePartitionKey, StateError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.coordination.share_coordinator import ShareCoordinator
    from wirebroker.engine.waiter import Response
    from wirebroker.share.state_rpcs import Partition, StateRpc

# Partitions of one request that wait for their records at the same time.
_MOST_WAITING: Final = 1_000


async def perform(
    coordinator: ShareCoordinator,
    rpc: StateRpc,
    group_id: str,
    partitions: Iterable[tuple[Partition, Any]],
    clock: Clock,
) -> dict[Partition, Any]:
    """Return the result of each partition; of a repeated one the last."""
    slices = Slices(clock)
    results: dict[Partition, Any] = {}
    waiting: list[tuple[Partition, asyncio.Future[Response]]] = []
    for partition, data in partitions:
        if isinstance(data, StateError):
            results[partition] = data
            continue
        key = SharePartitionKey(group_id, *partition)
        response = coordinator.submit(
            str(key), rpc.operation, key, *rpc.arguments(data), on_error=rpc.error
        )
        if isinstance(response, Mapping):
            results[partition] = response["result"]
        else:
            results[partition] = None
            waiting.append((partition, response))
        if len(waiting) == _MOST_WAITING:
            await _collect(waiting, results)
        await slices.turn()
    await _collect(waiting, results)
    return results


async def _collect(
    waiting: list[tuple[Partition, asyncio.Future[Response]]], results: dict[Partition, Any]
) -> None:
    for partition, response in waiting:
        results[partition] = (await response)["result"]
    waiting.clear()
