"""ShareGroupDescribe: state, epochs and members of share groups (KIP-932).

Source: Kafka's KafkaApis.handleShareGroupDescribe.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.groups.group_errors import ALL_ON_GROUP, response_of, serves_share_groups
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from wirebroker.coordinator.groups.share import share_describe
from wirebroker.coordinator.groups.share.error_texts import error_text
from wirebroker.coordinator.outcome import Outcome
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request


# Key of the steps that make a group's description.
_STEPS: Final = "steps"


@handles(ApiKey.SHARE_GROUP_DESCRIBE, permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC), cost=Cost.READS)
async def share_group_describe(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the requested groups."""
    del request
    if not serves_share_groups(broker):
        return {"groups": [_failed(name, ErrorCode.UNSUPPORTED_VERSION) for name in body.group_ids]}
    slices = Slices(broker.clock)
    groups: list[dict[str, Any]] = []
    for group_id in body.group_ids:
        if not group_id:
            groups.append(_failed(group_id, ErrorCode.INVALID_GROUP_ID))
            continue
        result = broker.groups.submit(
            group_id, _describe, group_id, on_error=partial(_unavailable, group_id)
        )
        answer = await response_of(result)
        steps = answer.get(_STEPS)
        group = dict(answer) if steps is None else await slices.run(steps)
        if body.include_authorized_operations and not group.get("error_code", ErrorCode.NONE):
            group["authorized_operations"] = ALL_ON_GROUP
        groups.append(group)
        await slices.turn()
    return {"groups": groups}


def _describe(shard: GroupShard, group_id: str, token: Any, _now: Any) -> Outcome:
    outcome = Outcome()
    try:
        # For the handler to run: a large group takes long.
        answer: dict[str, Any] = {_STEPS: share_describe.describe(shard, group_id)}
    except KafkaError as error:
        answer = {**_failed(group_id, error.code), "error_message": error.message}
    outcome.answer(token, answer)
    return outcome


def _unavailable(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {**_failed(group_id, error), "error_message": error_text(error)}


def _failed(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"group_id": group_id, "error_code": error}
