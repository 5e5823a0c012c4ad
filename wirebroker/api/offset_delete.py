"""OffsetDelete: an administrator lets a group forget partitions that it does not read (KIP-496).

Many offsets are deleted part by part, so that others are served in between.

Source: Kafka's KafkaApis.handleOffsetDeleteRequest, GroupCoordinatorService.deleteOffsets.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.commit_portions import (
    commit_portions,
    failures,
    merged,
    names_many,
    split_known,
)
from wirebroker.api.group_errors import error_only, response_of
from wirebroker.api.registry import handles
from wirebroker.clock import Slices, in_one_go, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import offsets as group_offsets
from wirebroker.handlers import Cost
from wirebroker.needs import DELETE_GROUP, READ_TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from wirebroker.broker import Broker
    from wirebroker.clock import Steps
    from wirebroker.coordinator.groups.shard import GroupShard
    from wirebroker.coordinator.outcome import Outcome, Token
    from wirebroker.request import Request

    Response = Mapping[str, Any]
    # Names of topics, and of each the partitions whose offsets go.
    Valid = Sequence[tuple[str, Sequence[int]]]
    Topics = list[dict[str, Any]]


@handles(ApiKey.OFFSET_DELETE, needs=(DELETE_GROUP, READ_TOPIC), cost=Cost.LOG)
def offset_delete(broker: Broker, request: Request, body: Any) -> Response | Awaitable[Response]:
    """Delete the offsets of those partitions that exist."""
    del request
    if not body.group_id:
        return error_only(ErrorCode.INVALID_GROUP_ID)
    if names_many(body.topics):
        return _delete_in_parts(broker, body)
    valid, refused = in_one_go(_sort(broker, body.topics))
    return _delete(broker, body.group_id, valid, refused)


async def _delete_in_parts(broker: Broker, body: Any) -> Response:
    slices = Slices(broker.clock)
    valid, refused = await slices.run(_sort(broker, body.topics))
    deleted: Topics = []
    # Without any the group may be refused all the same.
    for part in commit_portions(valid) if valid else ([],):
        answer = await response_of(_delete(broker, body.group_id, part, []))
        if answer.get("error_code"):
            return answer
        deleted += answer["topics"]
        await next_turn()
    return {"topics": await slices.run(merged(refused, deleted, "name"))}


def _delete(
    broker: Broker, group_id: str, valid: Valid, refused: Topics
) -> Response | Awaitable[Response]:
    def finish(answer: Response) -> Response:
        return {"topics": in_one_go(merged(refused, answer["topics"], "name"))}

    return broker.groups.submit(
        group_id, partial(_operate, group_id, valid), on_error=error_only, finish=finish
    )


def _operate(group_id: str, valid: Valid, shard: GroupShard, token: Token, _moment: Any) -> Outcome:
    return group_offsets.delete(shard, group_id, valid, token)


def _sort(broker: Broker, topics: Any) -> Steps[tuple[list[tuple[str, list[int]]], Topics]]:
    """Return the partitions that exist, each once, and the response about the others."""
    image = broker.metadata.image
    valid: dict[str, dict[int, None]] = {}
    refused: Topics = []
    for asked in topics:
        topic = image.topics.get(asked.name)
        indexes = () if topic is None else topic.partitions
        known, unknown = yield from split_known(asked.partitions, indexes)
        if unknown:
            failed = yield from failures(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            refused.append({"name": asked.name, "partitions": failed})
        for each in known:
            valid.setdefault(asked.name, {})[each.partition_index] = None
            yield
    return [(name, list(partitions)) for name, partitions in valid.items()], refused
