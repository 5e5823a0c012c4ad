"""Fetch and FetchSnapshot of the metadata log, for brokers and other observers.

Source: Kafka's ControllerApis and KafkaRaftClient; KIP-595, KIP-853, KIP-903, KIP-951, KIP-1166.
Rules: quorum/controller/metadata_fetch.py.
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
