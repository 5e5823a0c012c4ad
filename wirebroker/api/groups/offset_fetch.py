"""OffsetFetch: returns groups' committed offsets.

v2 all topics by null, an error for the group, v7 require stable (KIP-447), v8 several groups
(KIP-709), v9 member id and epoch (KIP-848), v10 topic ids instead of names (KIP-516).

Source: Kafka's KafkaApis.handleOffsetFetchRequest, OffsetFetchRequest, OffsetFetchResponse.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.groups.requested_offsets import merged_groups, merged_topics
from wirebroker.coordinator.groups.shard import offsets as group_offsets
from wirebroker.coordinator.groups.shard.offsets import DetachedOffsets
from wirebroker.coordinator.outcome import Outcome
from wirebroker.request.handlers import Cost
from wirebroker.request.request import LargeResponse, Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.shard.offsets import HasOffsets
    from wirebroker.coordinator.groups.shard.shard import GroupShard

    Response = Mapping[str, Any]

FIRST_GROUPS_VERSION = 8
FIRST_MEMBER_EPOCH_VERSION = 9
FIRST_TOPIC_ID_VERSION = 10
# Before this version only partitions have errors.
FIRST_GROUP_ERROR_VERSION = 2

# Offsets to look up on the loop, 13 us each. Otherwise the group's result has the key _LOOK_UP: a
# function for a thread that returns the topics.
_AT_ONCE = 250
_LOOK_UP = "look_up"

# A response of 150 MB; groups that start beyond this number are refused.
MOST_PARTITIONS = 500_000

Topics = list[dict[str, Any]]
Result: TypeAlias = "Response | asyncio.Future[Response]"


@handles(ApiKey.OFFSET_FETCH, permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC), cost=Cost.READS)
def offset_fetch(broker: Broker, request: Request, body: Any) -> Response | Awaitable[Response]:
    """Look up the offsets of one or several groups; each group and partition once."""
    version, is_stable = request.version, body.require_stable
    if version >= FIRST_GROUPS_VERSION:
        if len(body.groups) == 1 and _names_few(body.groups[0].topics):
            (group,) = body.groups
            result = _fetch(broker, version, group, _of_several_groups, is_stable=is_stable)
            return _of_groups([result]) if _is_open(result) else {"groups": [result]}
        return _fetch_groups(broker, version, body)
    if not _names_few(body.topics):
        return _fetch_once(broker, version, body)
    respond = partial(_of_one_group, version, body.topics)
    result = _fetch(broker, version, body, respond, is_stable=is_stable)
    return _resolve(result, respond) if _is_open(result) else result


def _names_few(topics: Sequence[Any] | None) -> bool:
    """Return whether so few partitions are named that repetitions do not matter."""
    if topics is None:
        return True
    return len(topics) <= _AT_ONCE and sum(len(e.partition_indexes) for e in topics) <= _AT_ONCE


async def _fetch_once(broker: Broker, version: int, body: Any) -> Response:
    body.topics = await Slices(broker.clock).run(merged_topics(body.topics))
    result = _fetch(broker, version, body, _of_several_groups, is_stable=body.require_stable)
    group = await _resolve(result, _of_several_groups)
    respond = partial(_of_one_group, version, body.topics)
    return LargeResponse(await in_thread(Work.CODING, lambda: respond(dict(group))))


async def _fetch_groups(broker: Broker, version: int, body: Any) -> Response:
    slices = Slices(broker.clock)
    groups: list[Response] = []
    room = MOST_PARTITIONS
    for requested in await slices.run(merged_groups(body.groups)):
        if room <= 0:
            groups.append(_refused(requested.group_id, ErrorCode.INVALID_REQUEST))
        else:
            result = _fetch(
                broker, version, requested, _of_several_groups, is_stable=body.require_stable
            )
            group = await _resolve(result, _of_several_groups)
            groups.append(group)
            room -= sum(len(topic["partitions"]) for topic in group["topics"])
        await slices.turn()
    return LargeResponse(groups=groups)


async def _of_groups(results: Sequence[Result]) -> Response:
    groups = [await _resolve(result, _of_several_groups) for result in results]
    is_large = any(isinstance(group, LargeResponse) for group in groups)
    return LargeResponse(groups=groups) if is_large else {"groups": groups}


def _refused(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"group_id": group_id, "topics": [], "error_code": error}


def _is_open(result: Result) -> bool:
    return isinstance(result, asyncio.Future) or _LOOK_UP in result


async def _resolve(result: Result, respond: Callable[[dict[str, Any]], Response]) -> Response:
    group = await response_of(result)
    look_up = group.get(_LOOK_UP)
    if look_up is None:
        return group
    topics = await in_thread(Work.CODING, look_up)
    return LargeResponse(respond({"group_id": group["group_id"], "topics": topics}))


def _fetch(
    broker: Broker,
    version: int,
    requested: Any,
    respond: Callable[[dict[str, Any]], Response],
    *,
    is_stable: bool,
) -> Result:
    """Return the result of `respond` for a group; see _LOOK_UP.

    `is_stable` omits offsets that an open transaction may change.
    """
    group_id, topics = requested.group_id, requested.topics
    image = broker.metadata.image
    find = partial(group_offsets.fetch, is_stable=is_stable)
    by_id = version >= FIRST_TOPIC_ID_VERSION

    def look_up(offsets: HasOffsets) -> Topics:
        if topics is None:
            fetched = group_offsets.fetch_all(offsets, group_id, is_stable=is_stable)
            return _named_by_id(image, fetched, by_id=by_id)
        return _of_topics(partial(find, offsets, group_id), image, topics, by_id=by_id)

    def operation(shard: GroupShard, token: Any, _now: Any) -> Outcome:
        group = shard.groups.get(group_id)
        if group is not None and version >= FIRST_MEMBER_EPOCH_VERSION:
            group.check_fetch(requested)
        if topics is None:
            count = len(shard.offsets.by_group.get(group_id, ()))
        else:
            count = len(topics) + sum(len(topic.partition_indexes) for topic in topics)
        answer: dict[str, Any] = {"group_id": group_id}
        if count > _AT_ONCE:
            answer[_LOOK_UP] = partial(look_up, DetachedOffsets.of(shard, group_id))
        else:
            answer["topics"] = look_up(shard)
        outcome = Outcome()
        outcome.answer(token, answer)
        return outcome

    def finish(group: dict[str, Any]) -> Response:
        return group if _LOOK_UP in group else respond(group)

    return broker.groups.submit(
        group_id,
        operation,
        on_error=lambda error: respond(_refused(group_id, error)),
        finish=finish,
    )


def _of_topics(
    find: Callable[[list[tuple[str, bytes, Sequence[int]]]], Topics],
    image: ClusterImage,
    topics: Sequence[Any],
    *,
    by_id: bool,
) -> Topics:
    if not by_id:
        return find(
            [(requested.name, ZERO_UUID, requested.partition_indexes) for requested in topics]
        )
    valid: list[tuple[str, bytes, Sequence[int]]] = []
    unknown: Topics = []
    for requested in topics:
        topic = image.topics_by_id.get(requested.topic_id)
        if topic is None:
            unknown.append(_unknown(requested))
        else:
            valid.append((topic.name, topic.topic_id, requested.partition_indexes))
    return [*find(valid), *unknown]


def _unknown(topic: Any) -> dict[str, Any]:
    return _failed(topic, ErrorCode.UNKNOWN_TOPIC_ID) | {"topic_id": topic.topic_id}


def _named_by_id(image: ClusterImage, topics: Topics, *, by_id: bool) -> Topics:
    if not by_id:
        return topics
    return [
        {**topic, "topic_id": image.topics[topic["name"]].topic_id}
        for topic in topics
        if topic["name"] in image.topics
    ]


def _of_several_groups(group: dict[str, Any]) -> dict[str, Any]:
    return group


def _of_one_group(
    version: int, requested: Sequence[Any] | None, group: dict[str, Any]
) -> dict[str, Any]:
    error: ErrorCode = group.get("error_code", ErrorCode.NONE)
    if error and version < FIRST_GROUP_ERROR_VERSION:
        return {"topics": [_failed(topic, error) for topic in requested or ()]}
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
