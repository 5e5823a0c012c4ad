"""Requests on a controller listener that this node serves from its own state and the image.

DescribeCluster (KIP-919) returns the only controller.

Source: Kafka's ControllerApis and AclApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.cluster.api_versions import answer_versions
from wirebroker.api.cluster.endpoint_types import CONTROLLERS, wrong_endpoint
from wirebroker.api.configs.describe_configs import NEEDS, DescribedNode, answer_described_configs
from wirebroker.api.controller.registry import CONTROLLER_REGISTRY, handles, handles_raw
from wirebroker.api.security.sasl import sasl_authenticate, sasl_handshake
from wirebroker.authorization.described_acls import describe_rules
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Reply, Request


@handles_raw(ApiKey.API_VERSIONS, permissions=(), cost=Cost.BOUNDED)
def api_versions(controller: QuorumController, request: Request) -> Reply:
    """Return all keys with handlers here."""
    keys = CONTROLLER_REGISTRY.registered_keys()
    return answer_versions(request, keys, controller.follower.image)


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


@handles_raw(ApiKey.DESCRIBE_CONFIGS, permissions=NEEDS, cost=Cost.READS)
async def describe_configs(controller: QuorumController, request: Request) -> Reply:
    """Describe configs of topics, this controller and the cluster default."""
    rules, image = controller.rules, controller.follower.image
    node = DescribedNode(
        rules.node_id, rules.config, image, controller.clock, controller.authorization
    )
    return await answer_described_configs(node, request)


@handles(ApiKey.DESCRIBE_ACLS, permissions=(DESCRIBE_CLUSTER,), cost=Cost.SLICES)
async def describe_acls(
    controller: QuorumController, request: Request, body: Any
) -> dict[str, Any]:
    """Describe the ACLs of the committed image."""
    del request
    image = controller.follower.image
    return await describe_rules(body, image, controller.rules.config, controller.clock)


# Clients that the guard has already served.
handles(ApiKey.SASL_HANDSHAKE, permissions=(), cost=Cost.BOUNDED)(sasl_handshake)
handles(ApiKey.SASL_AUTHENTICATE, permissions=(), cost=Cost.BOUNDED)(sasl_authenticate)
