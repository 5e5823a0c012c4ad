"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455).

Alter: v0 flexible, v1 may forbid a changed replication factor (KIP-860); List: v0. Rules:
coordinator/controller/partitions/reassignment.py.

Source: Kafka's ControllerApis.handleAlterPartitionReassignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost
from wirebroker.request.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwarded
@handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS, permissions=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def alter_partition_reassignments(broker: Broker, request: Request, body: Any) -> Any:
    """Start or cancel reassignments; each partition has its own result."""
    return await forward(broker, request, body)


@forwarded
@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, permissions=(DESCRIBE_CLUSTER,), cost=Cost.CONTROLLER)
async def list_partition_reassignments(broker: Broker, request: Request, body: Any) -> Any:
    """List ongoing reassignments of the requested partitions."""
    return await forward(broker, request, body)
