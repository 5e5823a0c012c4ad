"""DescribeCluster for controllers: the only one, and where it listens (KIP-919).

Source: Kafka's ControllerApis.handleDescribeCluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.controller_api.registry import handles
from wirebroker.handlers import Cost
from wirebroker.needs import DESCRIBE_CLUSTER

if TYPE_CHECKING:
    from wirebroker.cluster.quorum_controller import QuorumController
    from wirebroker.request import Request

# Which endpoints are asked for.
_BROKERS = 1
_CONTROLLERS = 2


@handles(ApiKey.DESCRIBE_CLUSTER, needs=(DESCRIBE_CLUSTER,), cost=Cost.BOUNDED)
def describe_cluster(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Name this node, by the listener that the request came to."""
    if body.endpoint_type != _CONTROLLERS:
        return _wrong_endpoint(body.endpoint_type, request.version)
    rules, session = controller.rules, request.session
    host, port = session.local_host, session.local_port
    for each in controller.endpoints:
        if each.name == session.listener_name:
            host, port = each.host, each.port
    return {
        "endpoint_type": _CONTROLLERS,
        "cluster_id": rules.cluster_id,
        "controller_id": rules.node_id,
        "brokers": [{"broker_id": rules.node_id, "host": host, "port": port, "rack": None}],
    }


def _wrong_endpoint(endpoint_type: int, version: int) -> dict[str, Any]:
    if endpoint_type == _BROKERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "This is a controller's endpoint; brokers cannot be described here."
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"There is no endpoint type {endpoint_type}."
    if version == 0:
        error = ErrorCode.INVALID_REQUEST
    return {"error_code": int(error), "error_message": message, "cluster_id": ""}
