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
    AskedRequest,
    Fields,
    Ruling,
    adding,
    failed_topics,
    indexes_of,
    keeping,
    kept,
    named,
    refused,
    split,
    told,
    with_field,
)
from wirebroker.codecs.acls import Resource
from wirebroker.coordinator.groups.wishes import merged_groups, merged_topics
from wirebroker.request.needs import (
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.errors import ErrorCode

    # Completes an OffsetFetch response.
    _Finish = Callable[[Mapping[str, Any]], Steps[Mapping[str, Any]]]

_FIRST_NULL_PROTOCOL: Final = 7
_FIRST_SYNC_WITH_PROTOCOL: Final = 5
_FIRST_COMMIT_BY_ID: Final = 10
_FIRST_FETCH_OF_GROUPS: Final = 8
_FIRST_FETCH_BY_ID: Final = 10
_FIRST_GROUP_ERROR: Final = 2
_NOT_ASKED: Final = -(1 << 31)


def join_group(asked: AskedRequest) -> Ruling:
    """Require READ of the group."""
    if asked.asking.may(READ_GROUP, asked.body.group_id):
        return SERVED
    empty = None if asked.version >= _FIRST_NULL_PROTOCOL else ""
    return refused(GROUP_DENIED, protocol_name=empty)


def read_group(asked: AskedRequest) -> Ruling:
    """Require READ of the group: Heartbeat, LeaveGroup."""
    if asked.asking.may(READ_GROUP, asked.body.group_id):
        return SERVED
    return refused(GROUP_DENIED)


def sync_group(asked: AskedRequest) -> Ruling:
    """Require READ of the group; a missing protocol is refused first, by the handler."""
    body = asked.body
    lacks_protocol = body.protocol_type is None or body.protocol_name is None
    if asked.version >= _FIRST_SYNC_WITH_PROTOCOL and lacks_protocol:
        return SERVED
    return read_group(asked)


def describe_groups(asked: AskedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group; add the authorized operations."""
    asking, body = asked.asking, asked.body
    body.groups, others = yield from split(asking, DESCRIBE_GROUP, body.groups, str)
    failures = yield from told(others, _denied_group)

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        groups: list[dict[str, Any]] = []
        for count, found in enumerate(answer["groups"], 1):
            group = dict(found)
            groups.append(group)
            if count % STEP == 0:
                yield
            if group.get("authorized_operations", _NOT_ASKED) != _NOT_ASKED:
                operations = asking.operations(Resource.GROUP, group["group_id"])
                group["authorized_operations"] = operations
        return with_field(answer, "groups", [*failures, *groups])

    return Ruling(merge=merge)


def list_groups(asked: AskedRequest) -> Ruling:
    """List all groups with DESCRIBE of the cluster, otherwise those with DESCRIBE."""
    asking = asked.asking
    if asking.may(DESCRIBE_CLUSTER, logs_denied=False):
        return SERVED
    return keeping(
        "groups", lambda group: asking.may(DESCRIBE_GROUP, group["group_id"], logs_denied=False)
    )


def delete_groups(asked: AskedRequest) -> Steps[Ruling]:
    """Require DELETE of each group."""
    body = asked.body
    body.groups_names, others = yield from split(asked.asking, DELETE_GROUP, body.groups_names, str)
    failures = yield from told(dict.fromkeys(others), _denied_group)
    return adding("results", failures)


def _denied_group(group_id: str) -> Fields:
    return {"group_id": group_id, "error_code": int(GROUP_DENIED)}


def offset_commit(asked: AskedRequest) -> Steps[Ruling]:
    """Require READ of the group and of each topic."""
    asking, body = asked.asking, asked.body
    if not asking.may(READ_GROUP, body.group_id):
        return Ruling({"topics": (yield from of_topics(body.topics, GROUP_DENIED))})
    return (yield from commit_of_topics(asked, by_id=asked.version >= _FIRST_COMMIT_BY_ID))


def commit_of_topics(asked: AskedRequest, *, by_id: bool) -> Steps[Ruling]:
    """Require READ of each topic.

    Args:
        asked: An OffsetCommit or TxnOffsetCommit; denied topics are removed from its body.
        by_id: Whether it names topics by id.
    """
    asked.body.topics, others = yield from _readable(asked, by_id=by_id)
    if not others:
        return SERVED
    failures = yield from of_topics(others, TOPIC_DENIED)
    return adding("topics", failures) if asked.body.topics else Ruling({"topics": failures})


def _readable(asked: AskedRequest, *, by_id: bool) -> Steps[tuple[list[Any], list[Any]]]:
    if not by_id:
        topics = asked.body.topics
        return (yield from split(asked.asking, READ_TOPIC, topics, lambda topic: str(topic.name)))
    by_ids = asked.image.topics_by_id
    # The handler refuses unknown ids.
    known = [topic for topic in asked.body.topics if topic.topic_id in by_ids]
    unknown = [topic for topic in asked.body.topics if topic.topic_id not in by_ids]
    allowed, others = yield from split(
        asked.asking, READ_TOPIC, known, lambda t: by_ids[t.topic_id].name
    )
    return unknown + allowed, others


def of_topics(topics: Iterable[Any], error: ErrorCode) -> Steps[list[Fields]]:
    """Return failed topics of an OffsetCommit or TxnOffsetCommit response."""
    return failed_topics(topics, _named_by_id, indexes_of, {"error_code": int(error)})


def _named_by_id(topic: Any) -> Fields:
    return {"name": topic.name, "topic_id": getattr(topic, "topic_id", bytes(16))}


def offset_delete(asked: AskedRequest) -> Steps[Ruling]:
    """Require DELETE of the group and READ of each topic."""
    asking, body = asked.asking, asked.body
    if not asking.may(DELETE_GROUP, body.group_id):
        return refused(GROUP_DENIED)
    body.topics, others = yield from split(
        asking, READ_TOPIC, body.topics, lambda topic: str(topic.name)
    )
    failures = yield from failed_topics(
        others, named, indexes_of, {"error_code": int(TOPIC_DENIED)}
    )

    def merge(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if answer.get("error_code"):
            return answer
        return with_field(answer, "topics", [*failures, *answer["topics"]])

    return Ruling(merge=merge) if failures else SERVED


def offset_fetch(asked: AskedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group and topic."""
    if asked.version >= _FIRST_FETCH_OF_GROUPS:
        return (yield from _fetch_of_groups(asked))
    body = asked.body
    if not asked.asking.may(DESCRIBE_GROUP, body.group_id):
        if asked.version >= _FIRST_GROUP_ERROR:
            return refused(GROUP_DENIED)
        topics = yield from merged_topics(body.topics or ())
        failures = yield from _of_fetch(topics, GROUP_DENIED)
        return Ruling({"topics": (yield from told(failures, _without_id))})
    finish = yield from _described(asked, body)

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        whole = yield from finish(answer)
        return with_field(answer, "topics", (yield from told(whole["topics"], _without_id)))

    return Ruling(merge=merge)


def _without_id(topic: Mapping[str, Any]) -> Fields:
    return {"name": topic["name"], "partitions": topic["partitions"]}


def _fetch_of_groups(asked: AskedRequest) -> Steps[Ruling]:
    asking, body = asked.asking, asked.body
    wanted = yield from merged_groups(body.groups)
    allowed: list[bool] = []
    finishes: list[_Finish] = []
    for group in wanted:
        allowed.append(asking.may(DESCRIBE_GROUP, group.group_id))
        if allowed[-1]:
            finish = yield from _described(asked, group)
            finishes.append(finish)
        yield
    body.groups = [g for g, is_allowed in zip(wanted, allowed, strict=True) if is_allowed]

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        found = zip(finishes, answer["groups"], strict=True)
        results: list[Mapping[str, Any]] = []
        for count, (group, is_allowed) in enumerate(zip(wanted, allowed, strict=True), 1):
            if is_allowed:
                finish, each = next(found)
                results.append((yield from finish(each)))
            else:
                error = int(GROUP_DENIED)
                results.append({"group_id": group.group_id, "topics": [], "error_code": error})
            if count % STEP == 0:
                yield
        return with_field(answer, "groups", results)

    return Ruling(merge=merge)


def _described(asked: AskedRequest, group: Any) -> Steps[_Finish]:
    """Remove denied topics from a group's request; return what completes its response."""
    asking = asked.asking
    if group.topics is None:

        def finish_all(found: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
            topics = found.get("topics") or ()
            shown = yield from kept(topics, lambda t: asking.may(DESCRIBE_TOPIC, t["name"]))
            return with_field(found, "topics", shown)

        return finish_all
    by_ids = asked.image.topics_by_id
    by_id = asked.version >= _FIRST_FETCH_BY_ID

    def is_shown(topic: Any) -> bool:
        if not by_id:
            return asking.may(DESCRIBE_TOPIC, topic.name)
        known = by_ids.get(topic.topic_id)
        return known is None or asking.may(DESCRIBE_TOPIC, known.name)

    shown: list[Any] = []
    failures: list[Fields] = []
    for count, topic in enumerate(group.topics, 1):
        if is_shown(topic):
            shown.append(topic)
        else:
            failures += yield from _of_fetch([topic], TOPIC_DENIED)
        if count % STEP == 0:
            yield
    group.topics = shown

    def finish(found: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        if found.get("error_code") or not failures:
            return found
        yield
        return with_field(found, "topics", [*found["topics"], *failures])

    return finish


def _of_fetch(topics: Iterable[Any], error: ErrorCode) -> Steps[list[Fields]]:
    same = {
        "committed_offset": -1,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": int(error),
    }
    return failed_topics(topics, _named_by_id, lambda topic: topic.partition_indexes, same)
