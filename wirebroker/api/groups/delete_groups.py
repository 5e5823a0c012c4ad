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
from wirebroker.coordinator.groups.requested_offsets import distinct
from wirebroker.coordinator.groups.shard import admin as group_admin
from wirebroker.coordinator.groups.share import share_deletion
from wirebroker.request.handlers import Cost
from wirebroker.share.state_deletion import delete_state

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    for group_id in await slices.run(distinct(body.groups_names)):
        answer = await _delete_share_state(broker, group_id)
        if not answer:
            result = broker.groups.submit(
                group_id, _delete, group_id, on_error=partial(_failed, group_id)
            )
            answer = await response_of(result)
        results += answer["results"]
        await slices.turn()
    return {"results": results}


async def _delete_share_state(broker: Broker, group_id: str) -> Mapping[str, Any]:
    """Delete the share state of a share group; return the response if that fails."""
    result = broker.groups.submit(
        group_id,
        share_deletion.begin_group_deletion,
        group_id,
        on_error=partial(_failed, group_id),
    )
    begun = await response_of(result)
    if "results" in begun:
        return begun
    state = begun[share_deletion.STATE]
    errors = await delete_state(broker.persister, broker.clock, group_id, state) if state else {}
    return _failed(group_id, next(iter(errors.values()))) if errors else {}


def _delete(shard: GroupShard, group_id: str, token: Any, _now: Any) -> Outcome:
    return group_admin.delete_groups(shard, [group_id], token)


def _failed(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"results": [{"group_id": group_id, "error_code": error}]}
