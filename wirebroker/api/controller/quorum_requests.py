"""Requests between the replicas of the metadata log: voters, and brokers as observers.

Source: Kafka's ControllerApis and KafkaRaftClient; KIP-595, KIP-853, KIP-996, KIP-1166.
Rules: coordinator/raft.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.controller.refused_requests import log_refusal
from wirebroker.api.controller.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import CLUSTER_ACTION
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request

_COSTS: Final = {
    ApiKey.FETCH: Cost.WAITS,
    ApiKey.FETCH_SNAPSHOT: Cost.THREADS,
    ApiKey.VOTE: Cost.THREADS,
    ApiKey.BEGIN_QUORUM_EPOCH: Cost.THREADS,
    ApiKey.END_QUORUM_EPOCH: Cost.THREADS,
    ApiKey.UPDATE_RAFT_VOTER: Cost.WAITS,
}


async def respond(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Have this node's replica respond."""
    listener = request.session.listener_name
    response = await controller.node.respond(request.key, request.version, body, listener=listener)
    log_refusal(request, response)
    return response


for _key, _cost in _COSTS.items():
    handles(_key, permissions=(CLUSTER_ACTION,), cost=_cost)(respond)
