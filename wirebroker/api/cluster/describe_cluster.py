"""DescribeCluster: the brokers, the controller's id and the cluster's id (KIP-700).

v1 endpoint types (KIP-919), v2 fenced brokers (KIP-1073).

Source: Kafka's AuthHelper.computeDescribeClusterResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.cluster.endpoint_types import BROKERS, wrong_endpoint
from wirebroker.api.registry import handles
from wirebroker.api.topics.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED
from wirebroker.api.topics.metadata import advertised, any_live_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@handles(ApiKey.DESCRIBE_CLUSTER, permissions=(DESCRIBE_CLUSTER,), cost=Cost.BOUNDED)
def describe_cluster(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the cluster from the committed image."""
    if body.endpoint_type != BROKERS:
        return wrong_endpoint(body.endpoint_type, request.version, served=BROKERS)
    brokers = [
        {"broker_id": node_id, "host": host, "port": port, "rack": rack, "is_fenced": False}
        for node_id, host, port, rack in advertised(broker, request.session)
    ]
    broker_ids = {entry["broker_id"] for entry in brokers}
    controller_id = any_live_broker(broker.metadata.image, broker.node_id)
    if body.include_fenced_brokers:
        brokers += _fenced(broker, request)
    includes_operations = body.include_cluster_authorized_operations
    return {
        "endpoint_type": BROKERS,
        "cluster_id": broker.cluster_id,
        "controller_id": controller_id if controller_id in broker_ids else -1,
        "brokers": brokers,
        "cluster_authorized_operations": ALL_ON_CLUSTER if includes_operations else NOT_ASKED,
    }


def _fenced(broker: Broker, request: Request) -> list[dict[str, Any]]:
    listener = request.session.listener_name
    return [
        {
            "broker_id": node.node_id,
            "host": node.endpoints[listener].host,
            "port": node.endpoints[listener].port,
            "rack": node.rack,
            "is_fenced": True,
        }
        for node in broker.metadata.image.brokers.values()
        if node.fenced and listener in node.endpoints
    ]
