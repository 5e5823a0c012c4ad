"""Rules of requests about share groups.

Without share groups in the cluster's features, all requests are refused as unsupported first.

Source: Kafka's KafkaApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.authorization.group_rules import consumer_group_describe
from wirebroker.authorization.ruling import (
    GROUP_DENIED,
    MESSAGES,
    SERVED,
    STEP,
    TOPIC_DENIED,
    CheckedRequest,
    Fields,
    Ruling,
    failed_topics,
    kept,
    refused,
    split,
    with_field,
)
from wirebroker.codecs.permissions import (
    DELETE_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
)
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.controller.features.feature_control import SHARE_VERSION
from wirebroker.coordinator.groups.requested_offsets import groups_of_all
from wirebroker.coordinator.groups.share.share_request import is_member_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Steps

    _Finish = Callable[[Mapping[str, Any]], Steps[Mapping[str, Any]]]

_TOPIC_DENIED: Final = {
    "error_code": int(TOPIC_DENIED),
    "error_message": MESSAGES[TOPIC_DENIED],
}


def _is_unsupported(request: CheckedRequest) -> bool:
    return request.image.features.get(SHARE_VERSION, 0) < 1


def _topic_name(topic: Any) -> str:
    return str(topic.topic_name)


def share_group_heartbeat(request: CheckedRequest) -> Steps[Ruling]:
    """Require READ of the group, and DESCRIBE of all topics of a subscription."""
    access, body = request.access, request.body
    if _is_unsupported(request):
        return SERVED
    if not access.may(READ_GROUP, body.group_id):
        return refused(GROUP_DENIED)
    if not is_member_id(body.member_id):
        # The handler refuses it.
        return SERVED
    names = body.subscribed_topic_names or ()
    _, denied_names = yield from split(access, DESCRIBE_TOPIC, names, str)
    return refused(TOPIC_DENIED) if denied_names else SERVED


def share_group_describe(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group, and of all topics that are assigned in it."""
    return SERVED if _is_unsupported(request) else (yield from consumer_group_describe(request))


def alter_share_group_offsets(request: CheckedRequest) -> Steps[Ruling]:
    """Require READ of the group and of each topic."""
    access, body = request.access, request.body
    if _is_unsupported(request):
        return SERVED
    if not access.may(READ_GROUP, body.group_id):
        return refused(GROUP_DENIED, error_message=MESSAGES[GROUP_DENIED])
    body.topics, denied_topics = yield from split(access, READ_TOPIC, body.topics, _topic_name)
    topics = request.image.topics

    def named(topic: Any) -> Fields:
        known = topics.get(topic.topic_name)
        return {
            "topic_name": topic.topic_name,
            "topic_id": ZERO_UUID if known is None else known.topic_id,
        }

    failures = yield from failed_topics(
        denied_topics,
        named,
        lambda topic: (partition.partition_index for partition in topic.partitions),
        _TOPIC_DENIED,
    )
    return _with_responses(failures)


def delete_share_group_offsets(request: CheckedRequest) -> Steps[Ruling]:
    """Require DELETE of the group and READ of each topic."""
    access, body = request.access, request.body
    if _is_unsupported(request):
        return SERVED
    if not access.may(DELETE_GROUP, body.group_id):
        return refused(GROUP_DENIED, error_message=MESSAGES[GROUP_DENIED])
    body.topics, denied_topics = yield from split(access, READ_TOPIC, body.topics, _topic_name)
    failures = [{"topic_name": topic.topic_name, **_TOPIC_DENIED} for topic in denied_topics]
    return _with_responses(failures)


def _with_responses(failures: list[Fields]) -> Ruling:
    """Return a ruling that puts failed topics before the others, unless the request fails."""

    def merge(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if answer.get("error_code"):
            return answer
        return with_field(answer, "responses", [*failures, *answer["responses"]])

    return Ruling(merge=merge) if failures else SERVED


def describe_share_group_offsets(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group and topic; topics that were not requested are left out."""
    access, body = request.access, request.body
    if _is_unsupported(request):
        return SERVED
    groups = yield from groups_of_all(body.groups)
    # None: the group is denied.
    finishes: list[_Finish | None] = []
    for group in groups:
        is_allowed = access.may(DESCRIBE_GROUP, group.group_id)
        finishes.append((yield from _described(request, group)) if is_allowed else None)
        yield
    body.groups = [
        group for group, finish in zip(groups, finishes, strict=True) if finish is not None
    ]

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        described = iter(answer["groups"])
        results: list[Mapping[str, Any]] = []
        for count, (group, finish) in enumerate(zip(groups, finishes, strict=True), 1):
            if finish is None:
                results.append({"group_id": group.group_id, "error_code": int(GROUP_DENIED)})
            else:
                results.append((yield from finish(next(described))))
            if count % STEP == 0:
                yield
        return with_field(answer, "groups", results)

    return Ruling(merge=merge)


def _described(request: CheckedRequest, group: Any) -> Steps[_Finish]:
    """Remove denied topics from a group of the request; return how to finish its response."""
    access = request.access
    if group.topics is None:

        def filtered(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
            allowed = yield from kept(
                answer.get("topics", ()),
                lambda topic: access.may(DESCRIBE_TOPIC, topic["topic_name"]),
            )
            return with_field(answer, "topics", allowed)

        return filtered
    group.topics, denied_topics = yield from split(
        access, DESCRIBE_TOPIC, group.topics, _topic_name
    )
    failures = yield from failed_topics(
        denied_topics,
        lambda topic: {"topic_name": topic.topic_name},
        lambda topic: topic.partitions,
        {"start_offset": -1, **_TOPIC_DENIED},
    )

    def added(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        if answer.get("error_code") or not failures:
            return answer
        yield
        return with_field(answer, "topics", [*answer.get("topics", ()), *failures])

    return added
