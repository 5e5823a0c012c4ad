"""ElectLeaders: elects preferred replicas, or any replica if there is no leader (KIP-460).

v0 preferred elections, v1 election types and a top-level error, v2 flexible. Rules:
coordinator/controller/partitions/leader_election.py.

Source: Kafka's ControllerApis.handleElectLeaders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost
from wirebroker.request.permissions import ALTER_CLUSTER

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwarded
@handles(ApiKey.ELECT_LEADERS, permissions=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def elect_leaders(broker: Broker, request: Request, body: Any) -> Any:
    """Hold the elections; a refusal is repeated for each partition."""
    return await forward(broker, request, body)
