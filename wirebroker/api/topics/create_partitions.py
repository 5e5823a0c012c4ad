"""CreatePartitions: adds partitions to topics.

v0-1, v2 flexible, v3 quota errors (KIP-599). Rules: coordinator/controller/topics/topic_control.py.

Source: Kafka's ControllerApis.createPartitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost
from wirebroker.request.permissions import ALTER_TOPIC

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwarded
@handles(ApiKey.CREATE_PARTITIONS, permissions=(ALTER_TOPIC,), cost=Cost.CONTROLLER)
async def create_partitions(broker: Broker, request: Request, body: Any) -> Any:
    """Add partitions."""
    return await forward(broker, request, body)
