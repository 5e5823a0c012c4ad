"""AlterPartitionReassignments and ListPartitionReassignments: replicas moved between brokers.

AlterPartitionReassignments v0 is flexible, v1 may insist on the replication factor (KIP-860);
ListPartitionReassignments has v0 (KIP-455). The rules are
coordinator/controller/partitions/reassignment.py's.

Source: Kafka's ControllerApis.handleAlterPartitionReassignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost
from wirebroker.request.needs import ALTER_CLUSTER, DESCRIBE_CLUSTER

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwarded
@handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS, needs=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def alter_partition_reassignments(broker: Broker, request: Request, body: Any) -> Any:
    """Judge each partition's target by itself."""
    return await forward(broker, request, body)


@forwarded
@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, needs=(DESCRIBE_CLUSTER,), cost=Cost.CONTROLLER)
async def list_partition_reassignments(broker: Broker, request: Request, body: Any) -> Any:
    """Name those under way, of the partitions asked for."""
    return await forward(broker, request, body)
