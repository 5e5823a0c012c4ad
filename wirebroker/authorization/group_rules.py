"""Rules of requests about groups and their offsets.

Source: Kafka's KafkaApis; the error responses of its request classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.authorization.ruling import (
    GROUP_DENIED,
    SERVED,
    STEP,
    TOPIC_DENIED,
    CheckedRequest,
    Fields,
    Ruling,
    adding,
    failed_topics,
    filtering,
    indexes_of,
    kept,
    named,
    once,
    refused,
    split,
    told,
    with_field,
)
from wirebroker.codecs.acls import Resource
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import (
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
)
from wirebroker.coordinator.groups.requested_offsets import merged_groups, merged_topics
from wirebroker.coordinator.groups.streams.streams_request import has_valid_topics
from wirebroker.coordinator.groups.topologies.topology import topic_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wirebroker.base.clock import Steps

    _Finish = Callable[[Mapping[str, Any]], Steps[Mapping[str, Any]]]

_FIRST_NULL_PROTOCOL: Final = 7
_FIRST_SYNC_WITH_PROTOCOL: Final = 5
_FIRST_COMMIT_BY_ID: Final = 10
_FIRST_FETCH_OF_GROUPS: Final = 8
_FIRST_FETCH_BY_ID: Final = 10
_FIRST_GROUP_ERROR: Final = 2
_NOT_REQUESTED: Final = -(1 << 31)


def join_group(request: CheckedRequest) -> Ruling:
    """Require READ of the group."""
    if request.access.may(READ_GROUP, request.body.group_id):
        return SERVED
    empty = None if request.version >= _FIRST_NULL_PROTOCOL else ""
    return refused(GROUP_DENIED, protocol_name=empty)


def read_group(request: CheckedRequest) -> Ruling:
    """Require READ of the group: Heartbeat, LeaveGroup."""
    if request.access.may(READ_GROUP, request.body.group_id):
        return SERVED
    return refused(GROUP_DENIED)


def sync_group(request: CheckedRequest) -> Ruling:
    """Require READ of the group; a missing protocol is refused first, by the handler."""
    body = request.body
    lacks_protocol = body.protocol_type is None or body.protocol_name is None
    if request.version >= _FIRST_SYNC_WITH_PROTOCOL and lacks_protocol:
        return SERVED
    return read_group(request)


def consumer_group_heartbeat(request: CheckedRequest) -> Steps[Ruling]:
    """Require READ of the group, and DESCRIBE of all topics that a subscription names."""
    access, body = request.access, request.body
    if not access.may(READ_GROUP, body.group_id):
        return refused(GROUP_DENIED)
    names = body.subscribed_topic_names or ()
    _, denied_names = yield from split(access, DESCRIBE_TOPIC, names, str)
    return refused(TOPIC_DENIED) if denied_names else SERVED


def consumer_group_describe(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group, and of all topics that are assigned in it."""
    message = "The group has described topic(s) that the client is not authorized to describe."
    return _describe_groups(request, _assigned_topics, message)


def streams_group_describe(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group, and of all topics of its topology."""
    message = "The described group uses topics that the client is not authorized to describe."
    return _describe_groups(request, _topology_topics, message)


def _describe_groups(
    request: CheckedRequest,
    topics_of: Callable[[Mapping[str, Any]], Iterable[str]],
    message: str,
) -> Steps[Ruling]:
    """Require DESCRIBE of each group; one with a topic that is not allowed gets an error."""
    access, body = request.access, request.body
    body.group_ids, denied_groups = yield from split(access, DESCRIBE_GROUP, body.group_ids, str)
    failures = yield from told(denied_groups, _denied_group)

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        groups: list[Fields] = []
        for described in answer["groups"]:
            group = dict(described)
            if group.get("authorized_operations", _NOT_REQUESTED) != _NOT_REQUESTED:
                operations = access.operations(Resource.GROUP, group["group_id"])
                group["authorized_operations"] = operations
            _, hidden = yield from split(access, DESCRIBE_TOPIC, topics_of(group), str)
            if hidden:
                group = {
                    "group_id": group["group_id"],
                    "error_code": int(TOPIC_DENIED),
                    "error_message": message,
                }
            groups.append(group)
        return with_field(answer, "groups", [*failures, *groups])

    return Ruling(merge=merge)


def _assigned_topics(group: Mapping[str, Any]) -> Iterable[str]:
    for member in group.get("members", ()):
        for name in ("assignment", "target_assignment"):
            if name in member:
                for topic in member[name]["topic_partitions"]:
                    yield topic["topic_name"]


def streams_group_heartbeat(request: CheckedRequest) -> Steps[Ruling]:
    """Require READ of the group, and DESCRIBE of all topics of a topology."""
    access, body = request.access, request.body
    if not access.may(READ_GROUP, body.group_id):
        return refused(GROUP_DENIED)
    # The handler refuses topics that a topology must not have.
    if body.topology is None or not has_valid_topics(body.topology):
        return SERVED
    names = yield from once(topic_names(body.topology))
    _, denied_names = yield from split(access, DESCRIBE_TOPIC, names, str)
    return refused(TOPIC_DENIED) if denied_names else SERVED


def _topology_topics(group: Mapping[str, Any]) -> Iterable[str]:
    topology: Mapping[str, Any] | None = group.get("topology")
    if topology is None:
        return
    subtopologies: Sequence[Mapping[str, Any]] = topology["subtopologies"] or ()
    for subtopology in subtopologies:
        yield from subtopology["source_topics"]
        yield from subtopology["repartition_sink_topics"]
        for field in ("repartition_source_topics", "state_changelog_topics"):
            topics: Sequence[Mapping[str, Any]] = subtopology[field]
            yield from (topic["name"] for topic in topics)


def describe_groups(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group; add the authorized operations."""
    access, body = request.access, request.body
    body.groups, denied_groups = yield from split(access, DESCRIBE_GROUP, body.groups, str)
    failures = yield from told(denied_groups, _denied_group)

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        groups: list[dict[str, Any]] = []
        for count, result in enumerate(answer["groups"], 1):
            group = dict(result)
            groups.append(group)
            if count % STEP == 0:
                yield
            if group.get("authorized_operations", _NOT_REQUESTED) != _NOT_REQUESTED:
                operations = access.operations(Resource.GROUP, group["group_id"])
                group["authorized_operations"] = operations
        return with_field(answer, "groups", [*failures, *groups])

    return Ruling(merge=merge)


def list_groups(request: CheckedRequest) -> Ruling:
    """List all groups with DESCRIBE of the cluster, otherwise those with DESCRIBE."""
    access = request.access
    if access.may(DESCRIBE_CLUSTER, logs_denied=False):
        return SERVED
    return filtering(
        "groups", lambda group: access.may(DESCRIBE_GROUP, group["group_id"], logs_denied=False)
    )


def delete_groups(request: CheckedRequest) -> Steps[Ruling]:
    """Require DELETE of each group."""
    body = request.body
    body.groups_names, denied_groups = yield from split(
        request.access, DELETE_GROUP, body.groups_names, str
    )
    failures = yield from told(dict.fromkeys(denied_groups), _denied_group)
    return adding("results", failures)


def _denied_group(group_id: str) -> Fields:
    return {"group_id": group_id, "error_code": int(GROUP_DENIED)}


def offset_commit(request: CheckedRequest) -> Steps[Ruling]:
    """Require READ of the group and of each topic."""
    access, body = request.access, request.body
    if not access.may(READ_GROUP, body.group_id):
        return Ruling({"topics": (yield from of_topics(body.topics, GROUP_DENIED))})
    return (yield from commit_of_topics(request, by_id=request.version >= _FIRST_COMMIT_BY_ID))


def commit_of_topics(request: CheckedRequest, *, by_id: bool) -> Steps[Ruling]:
    """Require READ of each topic; remove denied ones from an OffsetCommit or TxnOffsetCommit."""
    request.body.topics, denied_topics = yield from _readable(request, by_id=by_id)
    if not denied_topics:
        return SERVED
    failures = yield from of_topics(denied_topics, TOPIC_DENIED)
    if not request.body.topics:
        return Ruling({"topics": failures})
    return adding("topics", failures, is_first=True)


def _readable(request: CheckedRequest, *, by_id: bool) -> Steps[tuple[list[Any], list[Any]]]:
    if not by_id:
        topics = request.body.topics
        return (yield from split(request.access, READ_TOPIC, topics, lambda topic: str(topic.name)))
    by_ids = request.image.topics_by_id
    # The handler refuses unknown ids.
    known_topics = [topic for topic in request.body.topics if topic.topic_id in by_ids]
    unknown = [topic for topic in request.body.topics if topic.topic_id not in by_ids]
    allowed, denied_topics = yield from split(
        request.access, READ_TOPIC, known_topics, lambda topic: by_ids[topic.topic_id].name
    )
    return unknown + allowed, denied_topics


def of_topics(topics: Iterable[Any], error: ErrorCode) -> Steps[list[Fields]]:
    """Return failed topics of an OffsetCommit or TxnOffsetCommit response."""
    return failed_topics(topics, _named_by_id, indexes_of, {"error_code": int(error)})


def _named_by_id(topic: Any) -> Fields:
    return {"name": topic.name, "topic_id": getattr(topic, "topic_id", bytes(16))}


def offset_delete(request: CheckedRequest) -> Steps[Ruling]:
    """Require DELETE of the group and READ of each topic."""
    access, body = request.access, request.body
    if not access.may(DELETE_GROUP, body.group_id):
        return refused(GROUP_DENIED)
    body.topics, denied_topics = yield from split(
        access, READ_TOPIC, body.topics, lambda topic: str(topic.name)
    )
    failures = yield from failed_topics(
        denied_topics, named, indexes_of, {"error_code": int(TOPIC_DENIED)}
    )

    def merge(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if answer.get("error_code"):
            return answer
        return with_field(answer, "topics", [*failures, *answer["topics"]])

    return Ruling(merge=merge) if failures else SERVED


def offset_fetch(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group and topic."""
    if request.version >= _FIRST_FETCH_OF_GROUPS:
        return (yield from _fetch_of_groups(request))
    body = request.body
    if not request.access.may(DESCRIBE_GROUP, body.group_id):
        if request.version >= _FIRST_GROUP_ERROR:
            return refused(GROUP_DENIED)
        topics = yield from merged_topics(body.topics or ())
        failures = yield from _of_fetch(topics, GROUP_DENIED)
        return Ruling({"topics": (yield from told(failures, _without_id))})
    finish = yield from _described(request, body)

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        response = yield from finish(answer)
        return with_field(answer, "topics", (yield from told(response["topics"], _without_id)))

    return Ruling(merge=merge)


def _without_id(topic: Mapping[str, Any]) -> Fields:
    return {"name": topic["name"], "partitions": topic["partitions"]}


def _fetch_of_groups(request: CheckedRequest) -> Steps[Ruling]:
    access, body = request.access, request.body
    groups = yield from merged_groups(body.groups)
    allowed: list[bool] = []
    finishes: list[_Finish] = []
    for group in groups:
        allowed.append(access.may(DESCRIBE_GROUP, group.group_id))
        if allowed[-1]:
            finish = yield from _described(request, group)
            finishes.append(finish)
        yield
    body.groups = [group for group, is_allowed in zip(groups, allowed, strict=True) if is_allowed]

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        pending = zip(finishes, answer["groups"], strict=True)
        results: list[Mapping[str, Any]] = []
        for count, (group, is_allowed) in enumerate(zip(groups, allowed, strict=True), 1):
            if is_allowed:
                finish, group_result = next(pending)
                results.append((yield from finish(group_result)))
            else:
                error = int(GROUP_DENIED)
                results.append({"group_id": group.group_id, "topics": [], "error_code": error})
            if count % STEP == 0:
                yield
        return with_field(answer, "groups", results)

    return Ruling(merge=merge)


def _described(request: CheckedRequest, group: Any) -> Steps[_Finish]:
    access = request.access
    if group.topics is None:

        def finish_all(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
            topics = answer.get("topics") or ()
            allowed_topics = yield from kept(
                topics, lambda topic: access.may(DESCRIBE_TOPIC, topic["name"])
            )
            return with_field(answer, "topics", allowed_topics)

        return finish_all
    by_ids = request.image.topics_by_id
    by_id = request.version >= _FIRST_FETCH_BY_ID

    def error_of(topic: Any) -> ErrorCode:
        name = topic.name
        if by_id:
            topic_image = by_ids.get(topic.topic_id)
            if topic_image is None:
                # Here, because failed topics keep the order of the request.
                return ErrorCode.UNKNOWN_TOPIC_ID
            name = topic_image.name
        return ErrorCode.NONE if access.may(DESCRIBE_TOPIC, name) else TOPIC_DENIED

    allowed_topics: list[Any] = []
    failures: list[Fields] = []
    for count, topic in enumerate(group.topics, 1):
        error = error_of(topic)
        if error is ErrorCode.NONE:
            allowed_topics.append(topic)
        else:
            failures += yield from _of_fetch([topic], error)
        if count % STEP == 0:
            yield
    group.topics = allowed_topics

    def finish(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        if answer.get("error_code") or not failures:
            return answer
        yield
        return with_field(answer, "topics", [*answer["topics"], *failures])

    return finish


def _of_fetch(topics: Iterable[Any], error: ErrorCode) -> Steps[list[Fields]]:
    error_fields = {
        "committed_offset": -1,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": int(error),
    }
    return failed_topics(topics, _named_by_id, lambda topic: topic.partition_indexes, error_fields)
