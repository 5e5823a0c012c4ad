"""UnregisterBroker: removes a broker that will not return.

Source: Kafka's KafkaApis, which forwards it; KIP-500.
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
@handles(ApiKey.UNREGISTER_BROKER, permissions=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def unregister_broker(broker: Broker, request: Request, body: Any) -> Any:
    """Remove a broker's registration; a running broker registers again."""
    return await forward(broker, request, body)
