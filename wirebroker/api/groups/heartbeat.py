"""Heartbeat: keeps a member alive, and makes it rejoin if necessary.

v3 static members (KIP-345). Succeeds while groups are being loaded.

Source: Kafka's KafkaApis.handleHeartbeatRequest, GroupCoordinatorService.heartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import error_only
from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import READ_GROUP
from wirebroker.coordinator.groups.shard import classic_requests
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@handles(ApiKey.HEARTBEAT, permissions=(READ_GROUP,), cost=Cost.BOUNDED)
def heartbeat(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Restart the member's session timeout."""
    del request
    if not body.group_id:
        return error_only(ErrorCode.INVALID_GROUP_ID)
    return broker.groups.submit(
        body.group_id,
        classic_requests.heartbeat,
        body,
        on_error=_respond,
    )


def _respond(error: ErrorCode) -> dict[str, Any]:
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return error_only(ErrorCode.NONE)
    return error_only(error)
