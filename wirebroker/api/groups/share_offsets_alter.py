"""AlterShareGroupOffsets: sets the start offsets of a share group without members (KIP-932).

Source: Kafka's KafkaApis.handleAlterShareGroupOffsetsRequest,
GroupCoordinatorService.alterShareGroupOffsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import (
    failed_with_text,
    response_of,
    serves_share_groups,
)
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import READ_GROUP, READ_TOPIC
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.groups.share import share_initialization, share_offsets
from wirebroker.coordinator.groups.share.error_texts import error_text
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.share_state.state import StateError
    from wirebroker.request.request import Request

    _Partition = tuple[bytes, int]
    # By topic id and partition.
    _Offsets = dict[bytes, dict[int, int]]


@handles(ApiKey.ALTER_SHARE_GROUP_OFFSETS, permissions=(READ_GROUP, READ_TOPIC), cost=Cost.LOG)
async def alter_share_group_offsets(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Begin the share state of the partitions at new offsets."""
    del request
    group_id: str = body.group_id
    if not serves_share_groups(broker):
        return failed_with_text(ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return failed_with_text(ErrorCode.INVALID_GROUP_ID)
    slices = Slices(broker.clock)
    image = broker.metadata.image
    names, offsets = await slices.run(_requested(image, body.topics))
    result = broker.groups.submit(
        group_id, share_offsets.alter, group_id, offsets, on_error=failed_with_text
    )
    begun = await response_of(result)
    if "error_code" in begun:
        return dict(begun)
    state = await slices.run(_state(offsets, begun[share_offsets.STATE_EPOCH]))
    results = await broker.persister.initialize(group_id, state) if state else {}
    errors = {partition: error for partition, error in results.items() if error is not None}
    if state and not errors:
        # Without this record, the next member has the state created again.
        result = broker.groups.submit(
            group_id,
            share_initialization.initialized,
            group_id,
            {topic_id: tuple(starts) for topic_id, starts in offsets.items() if starts},
            on_error=failed_with_text,
        )
        await response_of(result)
    return {"responses": await slices.run(_responses(image, names, errors))}


def _requested(
    image: ClusterImage, topics: Sequence[Any]
) -> Steps[tuple[dict[str, dict[int, None]], _Offsets]]:
    """Return the requested partitions by topic name, and the offsets of those that exist."""
    names: dict[str, dict[int, None]] = {}
    offsets: _Offsets = {}
    for requested in topics:
        indexes = names.setdefault(requested.topic_name, {})
        topic = image.topics.get(requested.topic_name)
        known = () if topic is None else topic.partitions
        starts = {} if topic is None else offsets.setdefault(topic.topic_id, {})
        for partition in requested.partitions:
            indexes[partition.partition_index] = None
            if partition.partition_index in known:
                starts[partition.partition_index] = partition.start_offset
            yield
        yield
    return names, offsets


def _state(offsets: _Offsets, epoch: int) -> Steps[dict[_Partition, tuple[int, int]]]:
    state: dict[_Partition, tuple[int, int]] = {}
    for topic_id, starts in offsets.items():
        for index, start_offset in starts.items():
            state[topic_id, index] = epoch, start_offset
            yield
        yield
    return state


def _responses(
    image: ClusterImage,
    names: Mapping[str, Mapping[int, None]],
    errors: Mapping[_Partition, StateError],
) -> Steps[list[dict[str, Any]]]:
    """Return the topics of the response, with the persister's errors."""
    unknown: list[dict[str, Any]] = []
    known: list[dict[str, Any]] = []
    for name, indexes in names.items():
        topic = image.topics.get(name)
        topic_id = ZERO_UUID if topic is None else topic.topic_id
        partitions: list[dict[str, Any]] = []
        for index in indexes:
            error = errors.get((topic_id, index))
            if topic is None or index not in topic.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                partitions.append(_partition(index, code, error_text(code)))
            elif error is not None:
                partitions.append(_partition(index, error.code, error.message))
            else:
                partitions.append(_partition(index, ErrorCode.NONE, None))
            yield
        described = {"topic_name": name, "topic_id": topic_id, "partitions": partitions}
        (unknown if topic is None else known).append(described)
        yield
    return [*unknown, *known]


def _partition(index: int, error: ErrorCode, message: str | None) -> dict[str, Any]:
    return {"partition_index": index, "error_code": error, "error_message": message}
