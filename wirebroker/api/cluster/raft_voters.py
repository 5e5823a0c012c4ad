"""AddRaftVoter, RemoveRaftVoter: who votes on the metadata log (KIP-853).

The controllers decide. Where the only one is in this process, or another wirebroker, its voter is a
static one, and they are refused (coordinator/controller/raft_voters.py). AddRaftVoter v1 may be
answered before the voter is committed.

Source: Kafka's KafkaApis, which forwards both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost
from wirebroker.request.needs import ALTER_CLUSTER

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwarded
@handles(ApiKey.ADD_RAFT_VOTER, needs=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def add_raft_voter(broker: Broker, request: Request, body: Any) -> Any:
    """Have a controller vote that has followed so far."""
    return await forward(broker, request, body)


@forwarded
@handles(ApiKey.REMOVE_RAFT_VOTER, needs=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def remove_raft_voter(broker: Broker, request: Request, body: Any) -> Any:
    """Have a controller vote no more."""
    return await forward(broker, request, body)
