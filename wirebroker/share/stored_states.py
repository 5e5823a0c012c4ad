"""Runs requests on this node's share coordinator, partition by partition.

Source: Kafka's ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import Slices
from wirebroker.coordinator.share_state.state import SharePartitionKey, StateError, StateWrite
from wirebroker.share.state_writes import parts_of

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
    """Return the result of each partition; of a repeated one the last.

    A long write runs in parts. After the first one that fails, the others are left out.
    """
    slices = Slices(clock)
    results: dict[Partition, Any] = {}
    waiting: list[_Waiting] = []
    waiting_count = 0
    for partition, data in partitions:
        await slices.turn()  # an iterator may decode the data
        results[partition] = data if isinstance(data, StateError) else None
        if isinstance(data, StateError):
            continue
        key = SharePartitionKey(group_id, *partition)
        responses: list[asyncio.Future[Response]] = []
        for part in parts_of(data) if isinstance(data, StateWrite) else (data,):
            response = coordinator.submit(
                str(key), rpc.operation, key, *rpc.arguments(part), on_error=rpc.error
            )
            await slices.turn()
            if not isinstance(response, Mapping):
                responses.append(response)
                continue
            results[partition] = response["result"]
            if isinstance(response["result"], StateError):
                break
        if responses:
            waiting.append(_Waiting(partition, responses, results[partition]))
            waiting_count += len(responses)
        if waiting_count >= _MOST_WAITING:
            await _collect(waiting, results)
            waiting_count = 0
    await _collect(waiting, results)
    return results


class _Waiting(NamedTuple):
    """The parts of one partition's request that wait for their records."""

    partition: Partition
    responses: list[asyncio.Future[Response]]
    # Of a part that has failed already, or None.
    failure: Any


async def _collect(waiting: list[_Waiting], results: dict[Partition, Any]) -> None:
    for partition, responses, failure in waiting:
        result: Any = None
        for response in responses:
            part = (await response)["result"]
            result = result if isinstance(result, StateError) else part
        is_failed = isinstance(failure, StateError) and not isinstance(result, StateError)
        results[partition] = failure if is_failed else result
    waiting.clear()
