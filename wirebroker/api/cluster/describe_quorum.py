"""DescribeQuorum: the voters of the metadata log and their progress (KIP-642).

v0, v1 times (KIP-836), v2 messages, directories and nodes (KIP-853). The controller responds
(quorum/controller/quorum_description.py).

Source: Kafka's KafkaApis.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost
from wirebroker.request.permissions import DESCRIBE_CLUSTER

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwarded
@handles(ApiKey.DESCRIBE_QUORUM, permissions=(DESCRIBE_CLUSTER,), cost=Cost.CONTROLLER)
async def describe_quorum(broker: Broker, request: Request, body: Any) -> Any:
    """Describe the quorum as its leader sees it."""
    return await forward(broker, request, body)
