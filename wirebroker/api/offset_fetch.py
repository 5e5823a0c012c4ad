"""OffsetFetch: what groups have committed.

v2 all topics by null, an error for the group, v5 leader epochs (KIP-320), v6 flexible, v7 require
stable (KIP-447), v8 several groups (KIP-709), v9 member id and epoch (KIP-848), v10 topic ids
instead of names (KIP-516).

Source: Kafka's KafkaApis.handleOffsetFetchRequest, OffsetFetchRequest, OffsetFetchResponse.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.group_errors import response_of
from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator import group_offsets
from wirebroker.coordinator.runtime import Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from wirebroker.broker import Broker
    from wirebroker.coordinator.cluster_image import ClusterImage
    from wirebroker.coordinator.groups import GroupShard

    Response = Mapping[str, Any]

FIRST_GROUPS_VERSION = 8
FIRST_TOPIC_ID_VERSION = 10
# Before this version an error has no place but in the partitions.
FIRST_GROUP_ERROR_VERSION = 2

Topics = list[dict[str, Any]]


@handles(ApiKey.OFFSET_FETCH)
def offset_fetch(broker: Broker, request: Request, body: Any) -> Response | Awaitable[Response]:
    """Look up the offsets of one group, or of several."""
    if request.version < FIRST_GROUPS_VERSION:
        respond = partial(_of_one_group, request.version, body.topics)
        return _fetch(broker, request.version, body.group_id, body.topics, respond)
    results = [
        _fetch(broker, request.version, each.group_id, each.topics, _of_several_groups)
        for each in body.groups
    ]
    if any(isinstance(result, asyncio.Future) for result in results):
        return _gather(results)
    return {"groups": results}


async def _gather(results: Sequence[Response | asyncio.Future[Response]]) -> Response:
    return {"groups": [await response_of(result) for result in results]}


def _fetch(
    broker: Broker,
    version: int,
    group_id: str,
    topics: Sequence[Any] | None,
    respond: Callable[[dict[str, Any]], Response],
) -> Response | asyncio.Future[Response]:
    """Return what `respond` makes of a group of the response."""
    image = broker.metadata.image
    by_id = version >= FIRST_TOPIC_ID_VERSION

    def operation(shard: GroupShard, token: Any, _moment: Any) -> Outcome:
        if topics is None:
            found = _named_by_id(image, group_offsets.fetch_all(shard, group_id), by_id=by_id)
        else:
            found = _of_topics(shard, image, group_id, topics, by_id=by_id)
        outcome = Outcome()
        outcome.answer(token, {"group_id": group_id, "topics": found})
        return outcome

    return broker.groups.submit(
        group_id,
        operation,
        on_error=lambda error: respond({"group_id": group_id, "topics": [], "error_code": error}),
        finish=respond,
    )


def _of_topics(
    shard: GroupShard, image: ClusterImage, group_id: str, topics: Sequence[Any], *, by_id: bool
) -> Topics:
    if not by_id:
        named = [(each.name, ZERO_UUID, each.partition_indexes) for each in topics]
        return group_offsets.fetch(shard, group_id, named)
    known: list[tuple[str, bytes, Sequence[int]]] = []
    unknown: Topics = []
    for each in topics:
        topic = image.topics_by_id.get(each.topic_id)
        if topic is None:
            unknown.append(_unknown(each))
        else:
            known.append((topic.name, topic.topic_id, each.partition_indexes))
    return [*group_offsets.fetch(shard, group_id, known), *unknown]


def _unknown(topic: Any) -> dict[str, Any]:
    return _failed(topic, ErrorCode.UNKNOWN_TOPIC_ID) | {"topic_id": topic.topic_id}


def _named_by_id(image: ClusterImage, topics: Topics, *, by_id: bool) -> Topics:
    """Give topics their ids; those that are not there any more are left out."""
    if not by_id:
        return topics
    return [
        {**topic, "topic_id": image.topics[topic["name"]].topic_id}
        for topic in topics
        if topic["name"] in image.topics
    ]


def _of_several_groups(group: dict[str, Any]) -> dict[str, Any]:
    """Return a group of the response from v8 on."""
    return group


def _of_one_group(
    version: int, asked: Sequence[Any] | None, group: dict[str, Any]
) -> dict[str, Any]:
    """Return the response before v8, which is about one group."""
    error: ErrorCode = group.get("error_code", ErrorCode.NONE)
    if error and version < FIRST_GROUP_ERROR_VERSION:
        return {"topics": [_failed(topic, error) for topic in asked or ()]}
    topics = [
        {"name": topic["name"], "partitions": topic["partitions"]} for topic in group["topics"]
    ]
    return {"topics": topics, "error_code": error}


def _failed(topic: Any, error: ErrorCode) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": [
            {
                "partition_index": index,
                "committed_offset": group_offsets.NO_OFFSET,
                "committed_leader_epoch": -1,
                "metadata": "",
                "error_code": error,
            }
            for index in topic.partition_indexes
        ],
    }
