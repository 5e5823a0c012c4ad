"""Fetch and FetchSnapshot of the metadata log, for brokers and other observers.

Fetch: v12 epochs and divergence (KIP-595), v13 topic ids, v15 replica_state (KIP-903), v16
endpoints of leaders (KIP-951), v17 directories (KIP-853), v18 the follower's high watermark
(KIP-1166). FetchSnapshot: v1 directories and endpoints (KIP-853).

Source: Kafka's ControllerApis and KafkaRaftClient; rules: quorum/controller/metadata_fetch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.controller.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import CLUSTER_ACTION
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request


@handles(ApiKey.FETCH, permissions=(CLUSTER_ACTION,), cost=Cost.WAITS)
async def fetch(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Return committed records, or wait for them."""
    return await controller.fetches.fetch(request.version, body)


@handles(ApiKey.FETCH_SNAPSHOT, permissions=(CLUSTER_ACTION,), cost=Cost.THREADS)
async def fetch_snapshot(
    controller: QuorumController, request: Request, body: Any
) -> dict[str, Any]:
    """Return a part of a snapshot."""
    return await controller.fetches.fetch_snapshot(request.version, body)
