"""Requests that ask a controller for the active one.

DescribeCluster version 1 (KIP-919) returns all controllers, but controllers require Alter on the
cluster for it, as in Kafka. Nodes of the cluster may have ClusterAction only: they fetch the
metadata log, whose responses name the leader and its address, as Kafka's nodes do.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.errors import PeerError, error_name
from wirebroker.net.client.settings import PeerAddress

if TYPE_CHECKING:
    from wirebroker.net.client.node import Node

# DescribeCluster's endpoint_type.
_CONTROLLERS: Final = 2
_PROBE_S: Final = 2.0
_METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"


class ControllerLookup(NamedTuple):
    """A controller's description of its quorum.

    Attributes:
        cluster_id: None if the node may not know it.
        addresses: Of the registered controllers, or only of the active one.
    """

    cluster_id: str | None
    controller_id: int
    addresses: dict[int, PeerAddress]


class LookupProblem(NamedTuple):
    """Why a node does not name the active controller.

    Attributes:
        is_unreachable: There is no response of it.
        is_denied: It denies this node every right to know the active controller.
    """

    what: str
    is_of_a_broker: bool = False
    is_unreachable: bool = False
    is_denied: bool = False


async def look_up(node: Node, cluster_id: str | None) -> ControllerLookup | LookupProblem:
    """Ask a node for the active controller of a cluster, or of any if `cluster_id` is None."""
    try:
        answer = await node.request(ApiKey.DESCRIBE_CLUSTER, _question, timeout_s=_PROBE_S)
        if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return await _look_up_by_fetch(node, cluster_id)
    except PeerError as error:
        return LookupProblem(str(error), is_unreachable=True)
    is_other = not answer.error_code and answer.cluster_id != cluster_id
    if is_other and None not in (cluster_id, answer.cluster_id):
        return LookupProblem(f"{node.address} belongs to another cluster, {answer.cluster_id}")
    return _described(node, answer)


def _question(version: int) -> dict[str, int]:
    return {"endpoint_type": _CONTROLLERS} if version >= 1 else {}


def _described(node: Node, answer: Any) -> ControllerLookup | LookupProblem:
    if answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
        return LookupProblem(
            f"{node.address} is a client listener, not a controller listener", is_of_a_broker=True
        )
    if answer.error_code:
        return _error(node, answer.error_code, answer.error_message or "")
    if answer.endpoint_type != _CONTROLLERS:
        return LookupProblem(f"{node.address}: its response does not describe controllers")
    addresses = {
        broker.broker_id: PeerAddress(broker.host, broker.port) for broker in answer.brokers
    }
    if answer.controller_id not in addresses:
        return LookupProblem(f"{node.address}: no controller is active")
    return ControllerLookup(answer.cluster_id, answer.controller_id, addresses)


async def _look_up_by_fetch(node: Node, cluster_id: str | None) -> ControllerLookup | LookupProblem:
    """Read who leads from the response to a Fetch of epoch 0, which contains no records.

    Raises:
        PeerError: There is no response.
    """
    question = partial(_fetch, cluster_id)
    answer = await node.request(ApiKey.FETCH, question, timeout_s=_PROBE_S)
    if answer.error_code:
        return _error(node, answer.error_code, "")
    leaders = [
        partition.current_leader.leader_id
        for topic in answer.responses
        for partition in topic.partitions
    ]
    addresses = {
        endpoint.node_id: PeerAddress(endpoint.host, endpoint.port)
        for endpoint in answer.node_endpoints or ()
    }
    if not leaders or leaders[0] not in addresses:
        return LookupProblem(f"{node.address}: no controller is active")
    return ControllerLookup(None, leaders[0], addresses)


def _fetch(cluster_id: str | None, version: int) -> dict[str, Any]:
    del version  # an older controller names no addresses
    partition = {
        "partition": 0,
        "current_leader_epoch": 0,
        "fetch_offset": 0,
        "last_fetched_epoch": 0,
        "log_start_offset": 0,
        "partition_max_bytes": 1,
    }
    return {
        "cluster_id": cluster_id,
        "replica_state": {"replica_id": -1, "replica_epoch": -1},
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1,
        "topics": [{"topic_id": _METADATA_TOPIC_ID, "partitions": [partition]}],
    }


def _error(node: Node, code: int, message: str) -> LookupProblem:
    return LookupProblem(
        f"{node.address}: {error_name(code)} {message}".rstrip(),
        is_denied=code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )
