"""UpdateFeatures: changes of feature levels (KIP-584).

v0, v1 upgrade types and validation only (KIP-778), v2 no results per feature (KIP-1022).

Source: Kafka's QuorumController.updateFeatures.
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
@handles(ApiKey.UPDATE_FEATURES, permissions=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def update_features(broker: Broker, request: Request, body: Any) -> Any:
    """Change feature levels."""
    return await forward(broker, request, body)
