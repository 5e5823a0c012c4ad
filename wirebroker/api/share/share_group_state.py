"""The requests of brokers to the share coordinator (KIP-932).

InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState (v1 the number of completed
deliveries, KIP-1226), DeleteShareGroupState, ReadShareGroupStateSummary (v1 the same).

Source: Kafka's KafkaApis.handleReadShareGroupStateRequest and the like, ShareCoordinatorService.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import CLUSTER_ACTION
from wirebroker.request.handlers import Cost
from wirebroker.share.state_rpcs import DELETE, INITIALIZE, READ, READ_SUMMARY, WRITE, StateRpc
from wirebroker.share.stored_states import perform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.request.request import Request
    from wirebroker.share.state_rpcs import Partition


@handles(ApiKey.INITIALIZE_SHARE_GROUP_STATE, permissions=(CLUSTER_ACTION,), cost=Cost.LOG)
async def initialize_state(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Create the state of share partitions."""
    del request
    return await _served(broker, INITIALIZE, body)


@handles(ApiKey.READ_SHARE_GROUP_STATE, permissions=(CLUSTER_ACTION,), cost=Cost.LOG)
async def read_state(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Return the state of share partitions to their leader."""
    del request
    return await _served(broker, READ, body)


@handles(ApiKey.WRITE_SHARE_GROUP_STATE, permissions=(CLUSTER_ACTION,), cost=Cost.LOG)
async def write_state(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Change the state of share partitions."""
    del request
    return await _served(broker, WRITE, body)


@handles(ApiKey.DELETE_SHARE_GROUP_STATE, permissions=(CLUSTER_ACTION,), cost=Cost.LOG)
async def delete_state(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Delete the state of share partitions."""
    del request
    return await _served(broker, DELETE, body)


@handles(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, permissions=(CLUSTER_ACTION,), cost=Cost.LOG)
async def read_state_summary(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Return the epochs and offsets of share partitions."""
    del request
    return await _served(broker, READ_SUMMARY, body)


async def _served(broker: Broker, rpc: StateRpc, body: Any) -> dict[str, Any]:
    if not body.group_id or not _has_partitions(rpc, body):
        return {"results": []}
    partitions = _partitions(rpc, body)
    results = await perform(broker.share_coordinator, rpc, body.group_id, partitions, broker.clock)
    return {"results": await Slices(broker.clock).run(_topics(rpc, results))}


def _has_partitions(rpc: StateRpc, body: Any) -> bool:
    """Return whether each topic has a partition, which Initialize does not require."""
    return rpc is INITIALIZE or all(topic.partitions for topic in body.topics)


def _partitions(rpc: StateRpc, body: Any) -> Iterator[tuple[Partition, Any]]:
    for topic in body.topics:
        for partition in topic.partitions:
            yield (topic.topic_id, partition.partition), rpc.decode_data(partition)


def _topics(rpc: StateRpc, results: dict[Partition, Any]) -> Steps[list[dict[str, Any]]]:
    partitions: dict[bytes, list[dict[str, Any]]] = {}
    for (topic_id, index), result in results.items():
        partitions.setdefault(topic_id, []).append(rpc.result_fields(index, result))
        yield
    return [
        {"topic_id": topic_id, "partitions": entries} for topic_id, entries in partitions.items()
    ]
