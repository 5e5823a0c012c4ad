"""DescribeCluster on a controller listener: the only controller and its address (KIP-919).

Source: Kafka's ControllerApis.handleDescribeCluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.cluster.endpoint_types import CONTROLLERS, wrong_endpoint
from wirebroker.api.controller.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request


@handles(ApiKey.DESCRIBE_CLUSTER, permissions=(DESCRIBE_CLUSTER,), cost=Cost.BOUNDED)
def describe_cluster(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Describe this node, with the request's listener."""
    if body.endpoint_type != CONTROLLERS:
        return wrong_endpoint(body.endpoint_type, request.version, served=CONTROLLERS)
    rules, session = controller.rules, request.session
    host, port = session.local_host, session.local_port
    for endpoint in controller.endpoints:
        if endpoint.name == session.listener_name:
            host, port = endpoint.host, endpoint.port
    return {
        "endpoint_type": CONTROLLERS,
        "cluster_id": rules.cluster_id,
        "controller_id": rules.node_id,
        "brokers": [{"broker_id": rules.node_id, "host": host, "port": port, "rack": None}],
    }
