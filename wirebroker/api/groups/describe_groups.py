"""DescribeGroups: state and members of classic groups.

v3 authorized operations (KIP-430), v6 GROUP_ID_NOT_FOUND (KIP-1043).

Source: Kafka's KafkaApis.handleDescribeGroupsRequest, GroupCoordinatorService.describeGroups.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import ALL_ON_GROUP, response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import DESCRIBE_GROUP
from wirebroker.coordinator.groups.requested_offsets import distinct
from wirebroker.coordinator.groups.shard import admin as group_admin
from wirebroker.coordinator.outcome import Outcome
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request

FIRST_OPERATIONS_VERSION = 3


@handles(ApiKey.DESCRIBE_GROUPS, permissions=(DESCRIBE_GROUP,), cost=Cost.READS)
async def describe_groups(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe each of the requested groups once."""
    slices = Slices(broker.clock)
    groups: list[dict[str, Any]] = []
    tells_operations = (
        request.version >= FIRST_OPERATIONS_VERSION and body.include_authorized_operations
    )
    for group_id in await slices.run(distinct(body.groups)):
        result = broker.groups.submit(
            group_id,
            _describe,
            group_id,
            request.version,
            on_error=partial(_failed, group_id),
        )
        group = dict(await response_of(result))
        if tells_operations and not group.get("error_code", ErrorCode.NONE):
            group["authorized_operations"] = ALL_ON_GROUP
        groups.append(group)
        await slices.turn()
    return {"groups": groups}


def _describe(shard: GroupShard, group_id: str, version: int, token: Any, _now: Any) -> Outcome:
    outcome = Outcome()
    outcome.answer(token, group_admin.describe(shard, group_id, version=version))
    return outcome


def _failed(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"group_id": group_id, "error_code": error}
