"""OffsetDelete: an administrator lets a group forget partitions that it does not read (KIP-496).

Source: Kafka's KafkaApis.handleOffsetDeleteRequest, GroupCoordinatorService.deleteOffsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.group_errors import error_only
from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import offsets as group_offsets
from wirebroker.handlers import Cost
from wirebroker.needs import DELETE_GROUP, READ_TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.broker import Broker
    from wirebroker.request import Request


@handles(ApiKey.OFFSET_DELETE, needs=(DELETE_GROUP, READ_TOPIC), cost=Cost.LOG)
def offset_delete(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Delete the offsets of those partitions that exist."""
    del request
    if not body.group_id:
        return error_only(ErrorCode.INVALID_GROUP_ID)
    image = broker.metadata.image
    valid: list[tuple[str, list[int]]] = []
    refused: dict[str, list[dict[str, Any]]] = {}
    for asked in body.topics:
        topic = image.topics.get(asked.name)
        known: list[int] = []
        for each in asked.partitions:
            if topic is not None and each.partition_index in topic.partitions:
                known.append(each.partition_index)
            else:
                refused.setdefault(asked.name, []).append(
                    {
                        "partition_index": each.partition_index,
                        "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    }
                )
        if known:
            valid.append((asked.name, known))

    def finish(answer: dict[str, Any]) -> dict[str, Any]:
        merged = dict(refused)
        for topic in answer["topics"]:
            merged[topic["name"]] = [*merged.get(topic["name"], ()), *topic["partitions"]]
        return {
            "topics": [
                {"name": name, "partitions": partitions} for name, partitions in merged.items()
            ]
        }

    return broker.groups.submit(
        body.group_id,
        lambda shard, token, _moment: group_offsets.delete(shard, body.group_id, valid, token),
        on_error=error_only,
        finish=finish,
    )
