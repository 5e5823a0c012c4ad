"""ListGroups: all groups of this node.

v4 filter by state (KIP-518), v5 by type (KIP-848).

Source: Kafka's KafkaApis.handleListGroupsRequest, GroupCoordinatorService.listGroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER, DESCRIBE_GROUP
from wirebroker.coordinator.groups.shard import admin as group_admin
from wirebroker.coordinator.outcome import Outcome
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request


@handles(ApiKey.LIST_GROUPS, permissions=(DESCRIBE_CLUSTER, DESCRIBE_GROUP), cost=Cost.READS)
async def list_groups(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """List the groups; a partition that is being loaded fails the request."""
    del request

    slices = Slices(broker.clock)
    states = await slices.run(group_admin.filter_words(body.states_filter))
    types = await slices.run(group_admin.filter_words(body.types_filter))

    def operation(shard: GroupShard, token: Any, _now: Any) -> Outcome:
        outcome = Outcome()
        groups = group_admin.list_groups(shard, states, types)
        outcome.answer(token, {"groups": groups})
        return outcome

    groups: list[dict[str, Any]] = []
    for index in broker.groups.partitions():
        result = broker.groups.submit(
            index, operation, on_error=lambda error: {"error_code": error}
        )
        answer = await response_of(result)
        error = answer.get("error_code", ErrorCode.NONE)
        if error not in {ErrorCode.NONE, ErrorCode.NOT_COORDINATOR}:
            return {"error_code": error}
        groups += answer.get("groups", ())
        await slices.turn()
    return {"groups": groups}
