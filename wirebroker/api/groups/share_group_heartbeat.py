"""ShareGroupHeartbeat: joins, keeps or ends a membership of a share group (KIP-932).

Source: Kafka's KafkaApis.handleShareGroupHeartbeat.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups import hashing
from wirebroker.api.groups.group_errors import (
    client_host,
    error_only,
    response_of,
    serves_share_groups,
)
from wirebroker.api.groups.member_memory import memory_error
from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, shortened
from wirebroker.codecs.permissions import DESCRIBE_TOPIC, READ_GROUP
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.share import share_step
from wirebroker.coordinator.groups.share.share_heartbeat import heartbeat
from wirebroker.coordinator.groups.share.share_request import ShareHeartbeat, is_member_id
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request


@handles(ApiKey.SHARE_GROUP_HEARTBEAT, permissions=(READ_GROUP, DESCRIBE_TOPIC), cost=Cost.LOG)
def share_group_heartbeat(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Update the member and return its partitions."""
    if not serves_share_groups(broker):
        return error_only(ErrorCode.UNSUPPORTED_VERSION)
    if not is_member_id(body.member_id):
        return error_only(ErrorCode.INVALID_REQUEST)
    names = body.subscribed_topic_names or ()
    size = len(body.member_id) + len(body.rack_id or "") + sum(map(len, names))
    error = memory_error(broker, body.group_id, body.member_id, None, size)
    if error is not ErrorCode.NONE:
        return error_only(error)
    heard = ShareHeartbeat(body, shortened(request.client_id or ""), client_host(request))
    try:
        # As in Kafka, before the coordinator is looked up.
        heard.check()
    except KafkaError as invalid:
        return {"error_code": invalid.code, "error_message": invalid.message}
    return hashing.submit(broker, body.group_id, names, lambda: _beat(broker, heard))


def _beat(
    broker: Broker, heard: ShareHeartbeat
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    group_id = heard.body.group_id
    shard = broker.groups.shard_of(group_id)
    if shard is not None and share_step.is_large(shard, heard.body):
        return _beat_in_slices(broker, shard, heard)
    return broker.groups.submit(group_id, heartbeat, heard, on_error=error_only)


async def _beat_in_slices(
    broker: Broker, shard: GroupShard, heard: ShareHeartbeat
) -> Mapping[str, Any]:
    """Compute the step of a member with many partitions in slices, then run the operation."""
    async with broker.groups.preparing_steps[GroupType.SHARE]:
        prepared = await hashing.in_slices(broker, share_step.prepare(shard, heard))
        beat = partial(heartbeat, prepared=prepared)
        result = broker.groups.submit(heard.body.group_id, beat, heard, on_error=error_only)
    return await response_of(result)
