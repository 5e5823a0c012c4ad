"""AddRaftVoter, RemoveRaftVoter: changes of the metadata log's voters (KIP-853).

The controller decides. wirebroker's own has a static voter, so it refuses them
(coordinator/controller/raft_voters.py). AddRaftVoter v1 may respond before the voter is committed.

Source: Kafka's KafkaApis, which forwards both.
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
@handles(ApiKey.ADD_RAFT_VOTER, permissions=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def add_raft_voter(broker: Broker, request: Request, body: Any) -> Any:
    """Make an observing controller a voter."""
    return await forward(broker, request, body)


@forwarded
@handles(ApiKey.REMOVE_RAFT_VOTER, permissions=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def remove_raft_voter(broker: Broker, request: Request, body: Any) -> Any:
    """Remove a controller from the voters."""
    return await forward(broker, request, body)
