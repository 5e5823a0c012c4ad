"""DescribeShareGroupOffsets: the start offsets and lags of share groups (KIP-932).

v1 lags (KIP-1226).

Source: Kafka's KafkaApis.handleDescribeShareGroupOffsetsRequest,
GroupCoordinatorService.describeShareGroupOffsets.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.groups.group_errors import (
    failed_with_text,
    response_of,
    serves_share_groups,
)
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.groups.requested_offsets import groups_of_all
from wirebroker.coordinator.groups.share import share_offsets
from wirebroker.coordinator.groups.share.error_texts import error_text
from wirebroker.coordinator.share_state.state import StateError, StateSummary
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.request import Request

    _Summaries = Mapping[tuple[bytes, int], StateSummary | StateError]

# Groups that are described together.
_MOST_AT_ONCE: Final = 32
_UNKNOWN: Final = -1
# The persister accepts any leader epoch from a reader of summaries.
_ANY_LEADER_EPOCH: Final = 0


@handles(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    cost=Cost.LOG,
)
async def describe_share_group_offsets(
    broker: Broker, request: Request, body: Any
) -> dict[str, Any]:
    """Return the offsets of the requested partitions, or of all that have share state.

    A group that is requested several times has one response with all its topics.
    """
    del request
    slices = Slices(broker.clock)
    described: list[dict[str, Any]] = []
    groups = await slices.run(groups_of_all(body.groups))
    for start in range(0, len(groups), _MOST_AT_ONCE):
        await slices.turn()
        some = groups[start : start + _MOST_AT_ONCE]
        # The persister may have to wait for share coordinators.
        described += await asyncio.gather(*(_described(broker, slices, group) for group in some))
    return {"groups": described}


async def _described(broker: Broker, slices: Slices, group: Any) -> dict[str, Any]:
    """Return a group of the response."""
    if not serves_share_groups(broker):
        return {"group_id": group.group_id, "error_code": ErrorCode.UNSUPPORTED_VERSION}
    return {"group_id": group.group_id, **await _describe(broker, slices, group)}


async def _describe(broker: Broker, slices: Slices, group: Any) -> dict[str, Any]:
    """Return a group of the response, without its id."""
    image = broker.metadata.image
    unknown: list[dict[str, Any]] = []
    if group.topics is None:
        result = broker.groups.submit(
            group.group_id,
            share_offsets.initialized_partitions,
            group.group_id,
            on_error=failed_with_text,
        )
        answer = await response_of(result)
        if "error_code" in answer:
            return dict(answer)
        partitions: dict[bytes, Collection[int]] = {
            topic_id: indexes
            for topic_id, indexes in answer[share_offsets.PARTITIONS].items()
            if topic_id in image.topics_by_id
        }
    else:
        partitions, unknown = await slices.run(_requested(image, group.topics))
    wanted: dict[tuple[bytes, int], int] = {}
    for topic_id, indexes in partitions.items():
        for index in indexes:
            wanted[topic_id, index] = _ANY_LEADER_EPOCH
            await slices.turn()
    summaries = await broker.persister.read_summary(group.group_id, wanted) if wanted else {}
    names = {topic_id: image.topics_by_id[topic_id].name for topic_id in partitions}
    ends = await broker.latest_offsets.of(await slices.run(_with_lag(summaries, names)))
    topics = await slices.run(_topics(summaries, names, ends))
    return {"topics": [*topics, *unknown]}


def _requested(
    image: ClusterImage, topics: Any
) -> Steps[tuple[dict[bytes, Collection[int]], list[dict[str, Any]]]]:
    """Return the requested partitions by topic id, and the response for unknown topics."""
    known: dict[bytes, dict[int, None]] = {}
    unknown: dict[str, dict[int, None]] = {}
    for requested in topics:
        topic = image.topics.get(requested.topic_name)
        if topic is None:
            indexes = unknown.setdefault(requested.topic_name, {})
        else:
            indexes = known.setdefault(topic.topic_id, {})
        for index in requested.partitions:
            indexes[index] = None
            yield
        yield
    answers: list[dict[str, Any]] = []
    for name, indexes in unknown.items():
        partitions: list[dict[str, Any]] = []
        for index in indexes:
            partitions.append({"partition_index": index, "start_offset": _UNKNOWN})
            yield
        answers.append({"topic_name": name, "topic_id": ZERO_UUID, "partitions": partitions})
    return dict(known), answers


def _has_lag(summary: StateSummary | StateError) -> bool:
    if isinstance(summary, StateError):
        return False
    return _UNKNOWN not in (summary.start_offset, summary.delivery_complete_count)


def _with_lag(summaries: _Summaries, names: Mapping[bytes, str]) -> Steps[list[tuple[str, int]]]:
    """Return the partitions whose lag can be computed."""
    partitions: list[tuple[str, int]] = []
    for (topic_id, index), summary in summaries.items():
        if _has_lag(summary):
            partitions.append((names[topic_id], index))
        yield
    return partitions


def _topics(
    summaries: _Summaries,
    names: Mapping[bytes, str],
    ends: Mapping[tuple[str, int], int | ErrorCode],
) -> Steps[list[dict[str, Any]]]:
    partitions: dict[bytes, list[dict[str, Any]]] = {topic_id: [] for topic_id in names}
    for (topic_id, index), summary in summaries.items():
        end = ends.get((names[topic_id], index))
        partitions[topic_id].append({"partition_index": index, **_offsets(summary, end)})
        yield
    return [
        {"topic_name": names[topic_id], "topic_id": topic_id, "partitions": described}
        for topic_id, described in partitions.items()
    ]


def _offsets(summary: StateSummary | StateError, end: int | ErrorCode | None) -> dict[str, Any]:
    if isinstance(summary, StateError):
        return {"start_offset": _UNKNOWN, "lag": _UNKNOWN}
    if isinstance(end, ErrorCode):
        return {"error_code": end, "error_message": error_text(end)}
    start_offset, lag = summary.start_offset, _UNKNOWN
    if end is not None:
        lag = end - start_offset - summary.delivery_complete_count
    return {"start_offset": start_offset, "leader_epoch": summary.leader_epoch, "lag": lag}
