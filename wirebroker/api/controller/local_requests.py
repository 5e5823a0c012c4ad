"""Requests on a controller listener that this node serves from its own state and the image.

DescribeCluster (KIP-919) returns the controllers and the active one.

Source: Kafka's ControllerApis and AclApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.cluster.api_versions import answer_versions
from wirebroker.api.cluster.endpoint_types import CONTROLLERS, wrong_endpoint
from wirebroker.api.configs.describe_configs import NEEDS, DescribedNode, answer_described_configs
from wirebroker.api.controller.registry import CONTROLLER_REGISTRY, handles, handles_raw
from wirebroker.api.security.sasl import sasl_authenticate, sasl_handshake
from wirebroker.api.topics.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED
from wirebroker.authorization.described_acls import describe_rules
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER
from wirebroker.coordinator.raft.protocol.messages import NO_LEADER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Reply, Request
    from wirebroker.request.session import Session


@handles_raw(ApiKey.API_VERSIONS, permissions=(), cost=Cost.BOUNDED)
def api_versions(controller: QuorumController, request: Request) -> Reply:
    """Return all keys with handlers here."""
    keys = CONTROLLER_REGISTRY.registered_keys()
    return answer_versions(request, keys, controller.follower)


@handles(ApiKey.DESCRIBE_CLUSTER, permissions=(ALTER_CLUSTER,), cost=Cost.BOUNDED)
def describe_cluster(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Describe the controllers, with the addresses of the request's listener."""
    if body.endpoint_type != CONTROLLERS:
        return wrong_endpoint(body.endpoint_type, request.version, served=CONTROLLERS)
    addresses = _controllers(controller, request.session)
    leader_id = controller.node.leadership.leader_id
    includes_operations = body.include_cluster_authorized_operations
    return {
        "endpoint_type": CONTROLLERS,
        "cluster_id": controller.rules.cluster_id,
        "controller_id": NO_LEADER if leader_id is None else leader_id,
        "brokers": [
            {"broker_id": node_id, "host": host, "port": port, "rack": None}
            for node_id, (host, port) in sorted(addresses.items())
        ],
        "cluster_authorized_operations": ALL_ON_CLUSTER if includes_operations else NOT_ASKED,
    }


def _controllers(controller: QuorumController, session: Session) -> dict[int, tuple[str, int]]:
    """Return the addresses of the voters and of the registered controllers on a listener.

    Voters without a registration are those that no active controller has heard of yet.
    """
    name = session.listener_name
    listeners: list[tuple[int, Iterable[Any]]] = [
        (voter.voter_id, voter.endpoints) for voter in controller.node.voters
    ]
    leader = controller.node.known_leader
    listeners.append((leader.leader_id, leader.endpoints))
    listeners += [
        (node_id, record.body.end_points)
        for node_id, record in controller.follower.image.controllers.items()
    ]
    listeners.append((controller.rules.node_id, controller.endpoints))
    addresses = {
        node_id: (endpoint.host, endpoint.port)
        for node_id, endpoints in listeners
        for endpoint in endpoints
        if endpoint.name == name
    }
    addresses.setdefault(controller.rules.node_id, (session.local_host, session.local_port))
    return addresses


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
