"""JoinGroup: joins or rejoins a classic group; from v4 on members get an id first (KIP-394).

Source: Kafka's KafkaApis.handleJoinGroupRequest, GroupCoordinatorService.joinGroup; KIP-345,
KIP-559, KIP-800, KIP-814.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import cancelled_with_connection, client_host
from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import READ_GROUP
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
from wirebroker.coordinator.groups.classic.join import Join, join, shortened
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request

# From this version on the protocol's name is null instead of empty.
FIRST_NULL_PROTOCOL_VERSION = 7

# Metadata of a member for all its protocols: not counted up to the first limit; the second is the
# member's, the third that of all members on this node.
FEW_METADATA_BYTES = 16 << 10
MOST_METADATA_BYTES = 4 << 20
MOST_METADATA_BYTES_OF_ALL = 64 << 20


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
    error = _memory_error(broker, body)
    if error is not ErrorCode.NONE:
        return respond({"member_id": body.member_id, "error_code": error})
    answer = groups.submit(
        body.group_id,
        join,
        Join.of(
            body,
            version=request.version,
            client_id=shortened(request.client_id or ""),
            client_host=client_host(request),
        ),
        on_error=lambda error: respond({"error_code": error}),
        finish=respond,
    )
    return cancelled_with_connection(request, answer)


def _memory_error(broker: Broker, body: Any) -> ErrorCode:
    """Return the error if a member's metadata exceeds the limits.

    Kafka enforces the member's limit when the group's record does not fit into a batch, and does
    not limit the sum of all members.
    """
    size = sum(len(protocol.name) + len(protocol.metadata) for protocol in body.protocols)
    if size <= FEW_METADATA_BYTES:
        return ErrorCode.NONE
    if size > MOST_METADATA_BYTES:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    shards = tuple(broker.groups.shards())
    added = size - max((_own_bytes(shard, body) for shard in shards), default=0)
    stored_bytes = sum(shard.metadata_bytes for shard in shards)
    too_much = added > 0 and stored_bytes + added > MOST_METADATA_BYTES_OF_ALL
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if too_much else ErrorCode.NONE


def _own_bytes(shard: GroupShard, body: Any) -> int:
    group = shard.groups.get(body.group_id)
    if not isinstance(group, ClassicGroup):
        return 0
    instance = getattr(body, "group_instance_id", None)
    member_id = body.member_id or group.static_members.get(instance or "", "")
    member = group.members.get(member_id)
    return 0 if member is None else sum(len(name) + len(data) for name, data in member.protocols)


def _respond(version: int, answer: dict[str, Any]) -> dict[str, Any]:
    empty = None if version >= FIRST_NULL_PROTOCOL_VERSION else ""
    return {**answer, "protocol_name": answer.get("protocol_name") or empty}
