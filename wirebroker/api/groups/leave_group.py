"""LeaveGroup: removes members; from v3 on several (KIP-345).

Source: Kafka's KafkaApis.handleLeaveGroupRequest, GroupCoordinatorService.leaveGroup; KIP-800.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import error_only, response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import READ_GROUP
from wirebroker.coordinator.groups.shard import classic_requests
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request

FIRST_BATCH_VERSION = 3

# Members in one part: about 1 ms.
_AT_ONCE = 250


@handles(ApiKey.LEAVE_GROUP, permissions=(READ_GROUP,), cost=Cost.LOG)
def leave_group(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Remove members; each has its own error."""
    if not body.group_id:
        return error_only(ErrorCode.INVALID_GROUP_ID)
    identities: Sequence[Any] = body.members
    if request.version < FIRST_BATCH_VERSION:
        identities = [SimpleNamespace(member_id=body.member_id, group_instance_id=None)]
    if len(identities) > _AT_ONCE:
        return _leave_in_parts(broker, request.version, body.group_id, identities)
    return _leave(broker, request.version, body.group_id, identities)


async def _leave_in_parts(
    broker: Broker, version: int, group_id: str, identities: Sequence[Any]
) -> Mapping[str, Any]:
    members: list[Any] = []
    for start in range(0, len(identities), _AT_ONCE):
        part = identities[start : start + _AT_ONCE]
        response = await response_of(_leave(broker, version, group_id, part))
        if "members" not in response:
            return response
        members += response["members"]
        await next_turn()
    return {"members": members}


def _leave(
    broker: Broker, version: int, group_id: str, identities: Sequence[Any]
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    respond = partial(_respond, version)
    return broker.groups.submit(
        group_id,
        classic_requests.leave,
        group_id,
        identities,
        on_error=lambda error: respond(_failed(identities, error)),
        finish=respond,
    )


def _failed(identities: Sequence[Any], error: ErrorCode) -> dict[str, Any]:
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return error_only(error)
    members = [
        {
            "member_id": identity.member_id,
            "group_instance_id": identity.group_instance_id,
            "error_code": error,
        }
        for identity in identities
    ]
    return {"members": members}


def _respond(version: int, answer: dict[str, Any]) -> dict[str, Any]:
    if version >= FIRST_BATCH_VERSION or "members" not in answer:
        return answer
    return error_only(answer["members"][0].get("error_code", ErrorCode.NONE))
