"""OffsetDelete: deletes a group's offsets of partitions that it does not read (KIP-496).

Source: Kafka's KafkaApis.handleOffsetDeleteRequest, GroupCoordinatorService.deleteOffsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.chunked_commit import chunked_commits
from wirebroker.api.groups.group_errors import error_only, response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import DELETE_GROUP, READ_TOPIC
from wirebroker.coordinator.groups.shard import offsets as group_offsets
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.coordinator.outcome import Moment, Outcome, Token
    from wirebroker.request.request import Request


@handles(ApiKey.OFFSET_DELETE, permissions=(DELETE_GROUP, READ_TOPIC), cost=Cost.LOG)
async def offset_delete(broker: Broker, request: Request, body: Any) -> Mapping[str, Any]:
    """Delete the offsets of existing partitions."""
    del request
    group_id = body.group_id
    if not group_id:
        return error_only(ErrorCode.INVALID_GROUP_ID)
    slices = Slices(broker.clock)
    valid, results = await slices.run(_sorted(broker.metadata.image, body.topics))
    for part in chunked_commits(valid) if valid else [[]]:
        await next_turn()
        answer = await response_of(
            broker.groups.submit(
                group_id,
                _delete,
                group_id,
                part,
                on_error=error_only,
            )
        )
        if answer.get("error_code"):
            return answer
        for topic in answer["topics"]:
            results.setdefault(topic["name"], []).extend(topic["partitions"])
    return {
        "topics": [
            {"name": name, "partitions": partitions} for name, partitions in results.items()
        ],
    }


def _delete(
    shard: GroupShard, group_id: str, part: Sequence[tuple[Any, ...]], token: Token, _now: Moment
) -> Outcome:
    return group_offsets.delete(shard, group_id, part, token)


def _sorted(
    image: ClusterImage, topics: Iterable[Any]
) -> Steps[tuple[list[tuple[str, list[int]]], dict[str, list[dict[str, Any]]]]]:
    valid: dict[str, list[int]] = {}
    refused: dict[str, list[dict[str, Any]]] = {}
    for requested in topics:
        topic = image.topics.get(requested.name)
        for partition in requested.partitions:
            index = partition.partition_index
            if topic is not None and index in topic.partitions:
                valid.setdefault(requested.name, []).append(index)
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                failed = {"partition_index": index, "error_code": error}
                refused.setdefault(requested.name, []).append(failed)
            yield
        yield
    return list(valid.items()), refused
