"""StreamsGroupDescribe: the states of streams groups, their topologies and members (KIP-1071).

v1 the assignor's name (KIP-1357); topology descriptions (KIP-1331), of which none is stored here.

Source: Kafka's KafkaApis.handleStreamsGroupDescribe.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.groups.group_errors import ALL_ON_GROUP, response_of, serves_streams_groups
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from wirebroker.coordinator.groups.streams import streams_describe
from wirebroker.coordinator.outcome import Outcome
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request

# Key of the steps that make a group's description.
_STEPS: Final = "steps"
# The status of a topology description that is requested, and not stored.
_NOT_STORED: Final = 1
_FIRST_DESCRIPTION_VERSION: Final = 1


@handles(
    ApiKey.STREAMS_GROUP_DESCRIBE, permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC), cost=Cost.READS
)
async def streams_group_describe(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the requested groups."""
    if not serves_streams_groups(broker):
        return {"groups": [_failed(name, ErrorCode.UNSUPPORTED_VERSION) for name in body.group_ids]}
    has_descriptions = request.version >= _FIRST_DESCRIPTION_VERSION
    wants_description = has_descriptions and body.include_topology_description
    slices = Slices(broker.clock)
    groups: list[dict[str, Any]] = []
    for group_id in body.group_ids:
        if not group_id:
            groups.append(_failed(group_id, ErrorCode.INVALID_GROUP_ID))
            continue
        result = broker.groups.submit(
            group_id, _describe, group_id, on_error=partial(_failed, group_id)
        )
        answer = await response_of(result)
        steps = answer.get(_STEPS)
        group = dict(answer) if steps is None else await slices.run(steps)
        if not group.get("error_code", ErrorCode.NONE):
            if body.include_authorized_operations:
                group["authorized_operations"] = ALL_ON_GROUP
            if wants_description:
                group["topology_description_status"] = _NOT_STORED
        groups.append(group)
        await slices.turn()
    return {"groups": groups}


def _describe(shard: GroupShard, group_id: str, token: Any, _now: Any) -> Outcome:
    outcome = Outcome()
    try:
        # For the handler to run: a large group takes long.
        answer: dict[str, Any] = {_STEPS: streams_describe.describe(shard, group_id)}
    except KafkaError as error:
        answer = {**_failed(group_id, error.code), "error_message": error.message}
    outcome.answer(token, answer)
    return outcome


def _failed(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"group_id": group_id, "error_code": error}
