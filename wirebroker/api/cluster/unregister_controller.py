"""UnregisterController: removes a controller that will not return.

Source: Kafka's KafkaApis, which forwards it.
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
@handles(ApiKey.UNREGISTER_CONTROLLER, permissions=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def unregister_controller(broker: Broker, request: Request, body: Any) -> Any:
    """Remove a controller's registration."""
    return await forward(broker, request, body)
