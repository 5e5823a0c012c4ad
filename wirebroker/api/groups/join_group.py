"""JoinGroup: joins or rejoins a classic group; from v4 on members get an id first (KIP-394).

Source: Kafka's KafkaApis.handleJoinGroupRequest, GroupCoordinatorService.joinGroup; KIP-345,
KIP-559, KIP-800, KIP-814.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import access_of, cancelled_with_connection, client_host
from wirebroker.api.groups.member_memory import memory_error
from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import READ_GROUP
from wirebroker.coordinator.groups.classic.join import Join, shortened
from wirebroker.coordinator.groups.shard import classic_requests
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request

# From this version on the protocol's name is null instead of empty.
FIRST_NULL_PROTOCOL_VERSION = 7


@handles(ApiKey.JOIN_GROUP, permissions=(READ_GROUP,), cost=Cost.WAITS)
def join_group(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Respond when the join phase ends, or immediately with an error."""
    respond = partial(_respond, request.version)
    groups = broker.groups
    limits = groups.settings
    if not body.group_id:
        return respond({"member_id": body.member_id, "error_code": ErrorCode.INVALID_GROUP_ID})
    lowest, highest = limits.min_session_timeout_ms, limits.max_session_timeout_ms
    if not lowest <= body.session_timeout_ms <= highest:
        error = ErrorCode.INVALID_SESSION_TIMEOUT
        return respond({"member_id": body.member_id, "error_code": error})
    size = sum(len(protocol.name) + len(protocol.metadata) for protocol in body.protocols)
    error = memory_error(broker, body.group_id, body.member_id, body.group_instance_id, size)
    if error is not ErrorCode.NONE:
        return respond({"member_id": body.member_id, "error_code": error})
    answer = groups.submit(
        body.group_id,
        classic_requests.join,
        Join.of(
            body,
            version=request.version,
            client_id=shortened(request.client_id or ""),
            client_host=client_host(request),
            context=access_of(broker, request),
        ),
        on_error=lambda error: respond({"error_code": error}),
        finish=respond,
    )
    return cancelled_with_connection(request, answer)


def _respond(version: int, answer: dict[str, Any]) -> dict[str, Any]:
    empty = None if version >= FIRST_NULL_PROTOCOL_VERSION else ""
    return {**answer, "protocol_name": answer.get("protocol_name") or empty}
