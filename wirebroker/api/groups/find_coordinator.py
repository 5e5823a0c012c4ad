"""FindCoordinator: the coordinator of a group, a transactional id or a share partition.

v4 several keys (KIP-699), v6 share groups (KIP-932). The first request creates the internal topic.

Source: Kafka's KafkaApis.handleFindCoordinatorRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.api.registry import handles
from wirebroker.api.topics.metadata import advertised
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import CLUSTER_ACTION, DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID
from wirebroker.coordinator.groups.partitions import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordination.coordinator_service import CoordinatorService
    from wirebroker.coordinator.share_state.state import SharePartitionKey
    from wirebroker.request.request import Request

GROUP, TRANSACTION, SHARE = 0, 1, 2

FIRST_BATCH_VERSION = 4
FIRST_SHARE_VERSION = 6

_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details."
    ),
}


class _Coordinator(NamedTuple):
    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


@handles(
    ApiKey.FIND_COORDINATOR,
    permissions=(DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID, CLUSTER_ACTION),
    cost=Cost.READS,
)
def find_coordinator(
    broker: Broker, request: Request, body: Any
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Look up one or several coordinators."""
    if request.version >= FIRST_BATCH_VERSION:
        return _find_several(broker, request, body)
    nodes = _nodes(broker, request)
    coordinator = _find(broker, request, nodes, body.key_type, body.key)
    return {
        "error_code": coordinator.error,
        "error_message": _MESSAGES.get(coordinator.error, "NONE"),
        "node_id": coordinator.node_id,
        "host": coordinator.host,
        "port": coordinator.port,
    }


async def _find_several(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    slices = Slices(broker.clock)
    is_known = body.key_type in {GROUP, TRANSACTION, SHARE}
    nodes = _nodes(broker, request)
    by_key: dict[str, dict[str, Any]] = {}
    coordinators: list[dict[str, Any]] = []
    for key in body.coordinator_keys:
        if key not in by_key:
            coordinator = _find(broker, request, nodes, body.key_type, key)
            by_key[key] = {
                "key": key,
                "error_code": coordinator.error,
                "error_message": _MESSAGES[coordinator.error] if not is_known else "",
                "node_id": coordinator.node_id,
                "host": coordinator.host,
                "port": coordinator.port,
            }
        coordinators.append(by_key[key])
        await slices.turn()
    return {"coordinators": coordinators}


def _nodes(broker: Broker, request: Request) -> dict[int, tuple[str, int]]:
    nodes = advertised(broker, request.session)
    return {node_id: (host, port) for node_id, host, port, _ in nodes}


def _find(
    broker: Broker,
    request: Request,
    nodes: Mapping[int, tuple[str, int]],
    key_type: int,
    key: str,
) -> _Coordinator:
    if not _is_valid(request.version, key_type, key):
        return _Coordinator(ErrorCode.INVALID_REQUEST)
    if key_type == SHARE:
        key = str(_share_key(key))
    coordinator, name = _coordinator_of(broker, key_type)
    topic = broker.metadata.image.topics.get(name)
    if topic is None:
        coordinator.create_topic()
        return _Coordinator(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions.get(coordinator.partition_for(key))
    if partition is None or partition.leader not in nodes:
        return _Coordinator(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    node_id = partition.leader
    return _Coordinator(ErrorCode.NONE, node_id, *nodes[node_id])


def _coordinator_of(broker: Broker, key_type: int) -> tuple[CoordinatorService[Any], str]:
    """Return a kind of coordinator and the name of its topic."""
    if key_type == GROUP:
        return broker.groups, CONSUMER_OFFSETS
    if key_type == TRANSACTION:
        return broker.transactions, TRANSACTION_STATE
    return broker.share_coordinator, SHARE_GROUP_STATE


def _is_valid(version: int, key_type: int, key: str) -> bool:
    if key_type == SHARE:
        return version >= FIRST_SHARE_VERSION and _is_share_key(key)
    return key_type in {GROUP, TRANSACTION}


def _is_share_key(key: str) -> bool:
    try:
        _share_key(key)
    except ValueError:
        return False
    return True


def _share_key(text: str) -> SharePartitionKey:
    from wirebroker.coordinator.share_state.state import SharePartitionKey  # noqa: PLC0415

    return SharePartitionKey.parse(text)
