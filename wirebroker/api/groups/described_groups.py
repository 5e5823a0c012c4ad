"""ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe: states, members, assignments.

ConsumerGroupDescribe (KIP-848): v1 the kind of each member. ShareGroupDescribe: KIP-932.
StreamsGroupDescribe (KIP-1071): v1 the assignor's name (KIP-1357) and topology descriptions
(KIP-1331), of which none is stored here.

Each distinct id has one response, made in slices. Kafka responds once for each time that a request
names a group. A request can name a group of ten thousand members 100,000 times, so the response
would exceed any memory.

Source: Kafka's KafkaApis.handleConsumerGroupDescribe, handleShareGroupDescribe and
handleStreamsGroupDescribe.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.groups.group_errors import (
    ALL_ON_GROUP,
    response_of,
    serves_consumer_groups,
    serves_share_groups,
    serves_streams_groups,
)
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from wirebroker.coordinator.groups.consumer import consumer_describe
from wirebroker.coordinator.groups.requested_offsets import distinct
from wirebroker.coordinator.groups.share import share_describe
from wirebroker.coordinator.groups.share.error_texts import error_text
from wirebroker.coordinator.groups.streams import streams_describe
from wirebroker.coordinator.outcome import Outcome
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request

    Describe = Callable[[GroupShard, str], Steps[dict[str, Any]]]

# The status of a topology description that is requested, and not stored.
_NOT_STORED: Final = 1
_FIRST_DESCRIPTION_VERSION: Final = 1
# Key of the steps that make a group's description.
_STEPS: Final = "steps"


@handles(
    ApiKey.CONSUMER_GROUP_DESCRIBE, permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC), cost=Cost.READS
)
async def consumer_group_describe(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the requested consumer groups."""
    del request
    is_served = serves_consumer_groups(broker)
    describe = consumer_describe.describe
    groups = await _describe_each(broker, body, describe, is_served=is_served, failed=_refused)
    return {"groups": groups}


@handles(ApiKey.SHARE_GROUP_DESCRIBE, permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC), cost=Cost.READS)
async def share_group_describe(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the requested share groups."""
    del request
    is_served = serves_share_groups(broker)
    describe = share_describe.describe
    groups = await _describe_each(broker, body, describe, is_served=is_served, failed=_unavailable)
    return {"groups": groups}


@handles(
    ApiKey.STREAMS_GROUP_DESCRIBE, permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC), cost=Cost.READS
)
async def streams_group_describe(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the requested streams groups."""
    is_served = serves_streams_groups(broker)
    describe = streams_describe.describe
    groups = await _describe_each(broker, body, describe, is_served=is_served, failed=_refused)
    has_descriptions = request.version >= _FIRST_DESCRIPTION_VERSION
    if has_descriptions and body.include_topology_description:
        for group in groups:
            if not group.get("error_code", ErrorCode.NONE):
                group["topology_description_status"] = _NOT_STORED
    return {"groups": groups}


async def _describe_each(
    broker: Broker,
    body: Any,
    describe: Describe,
    *,
    is_served: bool,
    failed: Callable[[str, ErrorCode], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the groups of a response.

    Args:
        broker: The broker.
        body: A request with `group_ids`.
        describe: Describes a group, or raises KafkaError.
        is_served: Whether the cluster has this kind of groups.
        failed: Returns a group of the response whose coordinator cannot serve it.
    """
    slices = Slices(broker.clock)
    groups: list[dict[str, Any]] = []
    for group_id in await slices.run(distinct(body.group_ids)):
        await slices.turn()
        if not is_served:
            groups.append(_refused(group_id, ErrorCode.UNSUPPORTED_VERSION))
        elif not group_id:
            groups.append(_refused(group_id, ErrorCode.INVALID_GROUP_ID))
        else:
            operation = partial(_begin, describe)
            result = broker.groups.submit(
                group_id, operation, group_id, on_error=partial(failed, group_id)
            )
            answer = await response_of(result)
            steps = answer.get(_STEPS)
            group = dict(answer) if steps is None else await slices.run(steps)
            if body.include_authorized_operations and not group.get("error_code", ErrorCode.NONE):
                group["authorized_operations"] = ALL_ON_GROUP
            groups.append(group)
    return groups


def _begin(describe: Describe, shard: GroupShard, group_id: str, token: Any, _now: Any) -> Outcome:
    outcome = Outcome()
    try:
        # For the handler to run: a large group takes long.
        answer: dict[str, Any] = {_STEPS: describe(shard, group_id)}
    except KafkaError as error:
        answer = {**_refused(group_id, error.code), "error_message": error.message}
    outcome.answer(token, answer)
    return outcome


def _refused(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"group_id": group_id, "error_code": error}


def _unavailable(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {**_refused(group_id, error), "error_message": error_text(error)}
