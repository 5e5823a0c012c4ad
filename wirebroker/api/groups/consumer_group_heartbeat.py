"""ConsumerGroupHeartbeat: joins, keeps or ends a membership of a consumer group (KIP-848).

v1 regular expressions, ids that members choose (KIP-1082).

Source: Kafka's KafkaApis.handleConsumerGroupHeartbeat.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups import hashing, repeated_heartbeat
from wirebroker.api.groups.group_errors import (
    access_of,
    client_host,
    error_only,
    response_of,
    serves_consumer_groups,
)
from wirebroker.api.groups.member_memory import memory_error
from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_TOPIC, READ_GROUP
from wirebroker.coordinator.groups.classic.join import shortened
from wirebroker.coordinator.groups.consumer import prepared_step
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_heartbeat import heartbeat
from wirebroker.coordinator.groups.consumer.heartbeat_request import (
    ConsumerHeartbeat,
    requested_names,
)
from wirebroker.coordinator.groups.consumer.subscriptions import size_of_names
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request


@handles(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    permissions=(READ_GROUP, DESCRIBE_TOPIC),
    cost=Cost.LOG,
    repeat=repeated_heartbeat.repeat,
)
def consumer_group_heartbeat(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Update the member and return its partitions."""
    if not serves_consumer_groups(broker):
        return error_only(ErrorCode.UNSUPPORTED_VERSION)
    heard = ConsumerHeartbeat(
        body,
        request.version,
        shortened(request.client_id or ""),
        client_host(request),
        access_of(broker, request),
    )
    try:
        heard.check_count()
    except KafkaError as invalid:
        return {"error_code": invalid.code, "error_message": invalid.message}
    if hashing.has_many_names(body):
        return _serve_in_slices(broker, heard)
    response = _serve(broker, heard)
    if isinstance(response, dict):
        shard = broker.groups.shard_of(body.group_id)
        repeated_heartbeat.remember(shard, request, body, response)
    return response


async def _serve_in_slices(broker: Broker, heard: ConsumerHeartbeat) -> Mapping[str, Any]:
    """Sort and encode many topics in slices before the request is served."""
    names = heard.body.subscribed_topic_names
    requested = await hashing.in_slices(broker, requested_names(names))
    return await response_of(_serve(broker, heard._replace(requested=requested)))


def _serve(
    broker: Broker, heard: ConsumerHeartbeat
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    body = heard.body
    size = _size(broker.groups.shard_of(body.group_id), heard)
    error = memory_error(broker, body.group_id, body.member_id, body.instance_id, size)
    if error is not ErrorCode.NONE:
        return error_only(error)
    try:
        # As in Kafka, before the coordinator is looked up.
        heard.check(broker.groups.settings.consumer_assignors)
    except KafkaError as invalid:
        return {"error_code": invalid.code, "error_message": invalid.message}
    names = body.subscribed_topic_names or ()
    if heard.requested is not None:
        names = heard.requested.names
    return hashing.submit(broker, body.group_id, names, lambda: _beat(broker, heard))


def _beat(
    broker: Broker, heard: ConsumerHeartbeat
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    group_id = heard.body.group_id
    shard = broker.groups.shard_of(group_id)
    if shard is not None and prepared_step.is_large(shard, heard.body):
        return _beat_in_slices(broker, shard, heard)
    leaving = None if shard is None else prepared_step.leaves_much(shard, heard.body)
    if leaving is not None:
        return _leave_in_slices(broker, leaving, heard)
    return broker.groups.submit(group_id, heartbeat, heard, on_error=error_only)


async def _beat_in_slices(
    broker: Broker, shard: GroupShard, heard: ConsumerHeartbeat
) -> Mapping[str, Any]:
    """Compute the next step of a member with many topics in slices, then run the operation."""
    # One member at a time: if many computations alternated, targets would change before they end.
    async with broker.groups.preparing_steps[GroupType.CONSUMER]:
        prepared = await hashing.in_slices(broker, prepared_step.prepare(shard, heard))
        beat = partial(heartbeat, prepared=prepared)
        result = broker.groups.submit(heard.body.group_id, beat, heard, on_error=error_only)
    return await response_of(result)


async def _leave_in_slices(
    broker: Broker, member: ConsumerMember, heard: ConsumerHeartbeat
) -> Mapping[str, Any]:
    """Encode the record of a leaving static member in slices, then run the operation."""
    group_id = heard.body.group_id
    away = await hashing.in_slices(broker, prepared_step.prepare_away(group_id, member))
    beat = partial(heartbeat, prepared=away)
    return await response_of(broker.groups.submit(group_id, beat, heard, on_error=error_only))


def _size(shard: GroupShard | None, heard: ConsumerHeartbeat) -> int:
    """Return the bytes of what a member joins with; equal subscriptions are stored once."""
    body, requested = heard.body, heard.requested
    texts = (
        body.member_id,
        body.instance_id,
        body.rack_id,
        getattr(body, "subscribed_topic_regex", None),
    )
    size = sum(len(text or "") for text in texts)
    names = body.subscribed_topic_names
    if not names:
        return size
    group = None if shard is None else shard.groups.get(body.group_id)
    distinct = frozenset(names) if requested is None else requested.names
    if isinstance(group, ConsumerGroup) and group.subscriptions.has(distinct):
        return size
    return size + (size_of_names(names) if requested is None else requested.size_bytes)
