"""SyncGroup: distributes the group leader's assignment to the members.

v3 static members (KIP-345), v5 protocol type and name, then required (KIP-559).

Source: Kafka's KafkaApis.handleSyncGroupRequest, GroupCoordinatorService.syncGroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import cancelled_with_connection, error_only
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

FIRST_PROTOCOL_VERSION = 5


@handles(ApiKey.SYNC_GROUP, permissions=(READ_GROUP,), cost=Cost.WAITS)
def sync_group(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Respond when the leader has assigned."""
    lacks_protocol = body.protocol_type is None or body.protocol_name is None
    if request.version >= FIRST_PROTOCOL_VERSION and lacks_protocol:
        return error_only(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not body.group_id:
        return error_only(ErrorCode.INVALID_GROUP_ID)
    answer = broker.groups.submit(
        body.group_id,
        classic_requests.sync,
        body,
        on_error=error_only,
    )
    return cancelled_with_connection(request, answer)
