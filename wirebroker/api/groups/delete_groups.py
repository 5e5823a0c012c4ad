"""DeleteGroups: deletes groups without members, with their offsets (KIP-229).

Source: Kafka's KafkaApis.handleDeleteGroupsRequest, GroupCoordinatorService.deleteGroups.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import DELETE_GROUP
from wirebroker.coordinator.groups.shard import admin as group_admin
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.coordinator.outcome import Outcome
    from wirebroker.request.request import Request


@handles(ApiKey.DELETE_GROUPS, permissions=(DELETE_GROUP,), cost=Cost.LOG)
async def delete_groups(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Delete each group once."""
    del request
    slices = Slices(broker.clock)
    results: list[dict[str, Any]] = []
    for group_id in dict.fromkeys(body.groups_names):
        result = broker.groups.submit(
            group_id, _delete, group_id, on_error=partial(_failed, group_id)
        )
        answer = await response_of(result)
        results += answer["results"]
        await slices.turn()
    return {"results": results}


def _delete(shard: GroupShard, group_id: str, token: Any, _now: Any) -> Outcome:
    return group_admin.delete_groups(shard, [group_id], token)


def _failed(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"results": [{"group_id": group_id, "error_code": error}]}
