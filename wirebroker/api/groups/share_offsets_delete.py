"""DeleteShareGroupOffsets: deletes the share state of topics of a group without members (KIP-932).

Source: Kafka's KafkaApis.handleDeleteShareGroupOffsetsRequest,
GroupCoordinatorService.deleteShareGroupOffsets.
"""

from __future__ import annotations

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
from wirebroker.codecs.permissions import DELETE_GROUP, READ_TOPIC
from wirebroker.coordinator.groups.share import share_deletion
from wirebroker.coordinator.groups.share.error_texts import error_text
from wirebroker.coordinator.groups.share.share_topics import name_of
from wirebroker.request.handlers import Cost
from wirebroker.share.state_deletion import delete_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.request import Request

_UNKNOWN_TOPIC: Final = error_text(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_NOTHING: Final = "There is no offset information to delete."


@handles(ApiKey.DELETE_SHARE_GROUP_OFFSETS, permissions=(DELETE_GROUP, READ_TOPIC), cost=Cost.LOG)
async def delete_share_group_offsets(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Delete the share state of topics."""
    del request
    group_id: str = body.group_id
    if not serves_share_groups(broker):
        return failed_with_text(ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return failed_with_text(ErrorCode.INVALID_GROUP_ID)
    slices = Slices(broker.clock)
    image = broker.metadata.image
    topic_ids, unknown = await slices.run(_requested(image, body.topics))
    result = broker.groups.submit(
        group_id,
        share_deletion.begin_topic_deletion,
        group_id,
        topic_ids,
        on_error=failed_with_text,
    )
    begun = await response_of(result)
    if "error_code" in begun:
        return dict(begun)
    if not begun[share_deletion.HAS_TOPICS]:
        return {"responses": []}
    state = begun[share_deletion.STATE]
    errors = await delete_state(broker.persister, broker.clock, group_id, state)
    deleted = [topic_id for topic_id in state if topic_id not in errors]
    if deleted:
        result = broker.groups.submit(
            group_id,
            share_deletion.finish_topic_deletion,
            group_id,
            deleted,
            on_error=failed_with_text,
        )
        finished = await response_of(result)
        if "error_code" in finished:
            return dict(finished)
    responses = [_deleted(topic_id, errors, image) for topic_id in state]
    absent = [
        _refused(name_of(topic_id, image), _NOTHING) for topic_id in begun[share_deletion.ABSENT]
    ]
    return {"responses": [*responses, *absent, *unknown]}


def _requested(
    image: ClusterImage, topics: Any
) -> Steps[tuple[dict[bytes, None], list[dict[str, Any]]]]:
    """Return the ids of existing topics, and the response for the others."""
    topic_ids: dict[bytes, None] = {}
    unknown: dict[str, dict[str, Any]] = {}
    for requested in topics:
        topic = image.topics.get(requested.topic_name)
        if topic is not None:
            topic_ids[topic.topic_id] = None
        elif requested.topic_name not in unknown:
            unknown[requested.topic_name] = _refused(requested.topic_name, _UNKNOWN_TOPIC)
        yield
    return topic_ids, list(unknown.values())


def _refused(name: str, message: str | None) -> dict[str, Any]:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {"topic_name": name, "error_code": code, "error_message": message}


def _deleted(
    topic_id: bytes, errors: Mapping[bytes, ErrorCode], image: ClusterImage
) -> dict[str, Any]:
    error = errors.get(topic_id, ErrorCode.NONE)
    return {
        "topic_name": name_of(topic_id, image),
        "topic_id": topic_id,
        "error_code": error,
        "error_message": error_text(error),
    }
