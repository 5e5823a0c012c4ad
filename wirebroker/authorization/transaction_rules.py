"""Rules of requests about transactions and producers.

Source: Kafka's KafkaApis; the error responses of its request classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.authorization.group_rules import commit_of_topics, of_topics
from wirebroker.authorization.ruling import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    SERVED,
    STEP,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
    CheckedRequest,
    Fields,
    Ruling,
    failed_topics,
    filtering,
    kept,
    named,
    once,
    refused,
    split,
    with_field,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE,
    READ_GROUP,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from wirebroker.coordinator.controller.image.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Steps

# Brokers send these versions, for several transactions.
_FIRST_ADDING_OF_BROKERS: Final = 4
_FIRST_TXN_COMMIT_BY_ID: Final = 6


def init_producer_id(request: CheckedRequest) -> Ruling:
    """Require WRITE of the transactional id; without one IDEMPOTENT_WRITE, or WRITE of a topic."""
    access, body = request.access, request.body
    no_producer = {"producer_id": -1, "producer_epoch": -1}
    if body.transactional_id is not None:
        if access.may(WRITE_TRANSACTIONAL_ID, body.transactional_id):
            return SERVED
        return refused(TRANSACTIONAL_ID_DENIED, **no_producer)
    if access.may(IDEMPOTENT_WRITE, logs_denied=False) or access.may_some(WRITE_TOPIC):
        return SERVED
    return refused(CLUSTER_DENIED, **no_producer)


def add_partitions(request: CheckedRequest) -> Steps[Ruling]:
    """Require WRITE of the transactional id and all topics; one denial fails the whole request."""
    access, body = request.access, request.body
    if request.version >= _FIRST_ADDING_OF_BROKERS:
        return SERVED if access.may(CLUSTER_ACTION) else refused(CLUSTER_DENIED)
    topics = body.v3_and_below_topics
    if not access.may(WRITE_TRANSACTIONAL_ID, body.v3_and_below_transactional_id):
        return (yield from _not_added(topics, _not_by_this_id))
    client_topics = [topic for topic in topics if not is_internal(topic.name)]
    _, denied_topics = yield from split(
        access, WRITE_TOPIC, client_topics, lambda topic: str(topic.name)
    )
    if not denied_topics:
        return SERVED
    names = {topic.name for topic in denied_topics}

    def error_of(topic: str, index: int) -> ErrorCode:
        if topic in names or is_internal(topic):
            return TOPIC_DENIED
        if request.image.partition(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return (yield from _not_added(topics, error_of))


def _not_by_this_id(topic: str, index: int) -> ErrorCode:
    del topic, index
    return TRANSACTIONAL_ID_DENIED


def _not_added(topics: Any, error_of: Callable[[str, int], ErrorCode]) -> Steps[Ruling]:
    results: list[Fields] = []
    count = 0
    for topic in topics:
        partitions: list[Fields] = []
        for index in topic.partitions:
            error = error_of(topic.name, index)
            partitions.append({"partition_index": index, "partition_error_code": int(error)})
            count += 1
            if count % STEP == 0:
                yield
        results.append({"name": topic.name, "results_by_partition": partitions})
    return Ruling({"results_by_topic_v3_and_below": results})


def add_offsets(request: CheckedRequest) -> Ruling:
    """Require WRITE of the transactional id and READ of the group."""
    access, body = request.access, request.body
    if not access.may(WRITE_TRANSACTIONAL_ID, body.transactional_id):
        return refused(TRANSACTIONAL_ID_DENIED)
    if not access.may(READ_GROUP, body.group_id):
        return refused(GROUP_DENIED)
    return SERVED


def end_txn(request: CheckedRequest) -> Ruling:
    """Require WRITE of the transactional id."""
    if request.access.may(WRITE_TRANSACTIONAL_ID, request.body.transactional_id):
        return SERVED
    return refused(TRANSACTIONAL_ID_DENIED)


def txn_offset_commit(request: CheckedRequest) -> Steps[Ruling]:
    """Require WRITE of the transactional id, READ of the group and of each topic."""
    access, body = request.access, request.body
    if not access.may(WRITE_TRANSACTIONAL_ID, body.transactional_id):
        return Ruling({"topics": (yield from of_topics(body.topics, TRANSACTIONAL_ID_DENIED))})
    if not access.may(READ_GROUP, body.group_id):
        return Ruling({"topics": (yield from of_topics(body.topics, GROUP_DENIED))})
    return (yield from commit_of_topics(request, by_id=request.version >= _FIRST_TXN_COMMIT_BY_ID))


def write_txn_markers(request: CheckedRequest) -> Steps[Ruling]:
    """Require ALTER of the cluster or CLUSTER_ACTION."""
    access = request.access
    if access.may(ALTER_CLUSTER, logs_denied=False) or access.may(CLUSTER_ACTION):
        return SERVED
    markers: list[Fields] = []
    error_fields = {"error_code": int(CLUSTER_DENIED)}
    for marker in request.body.markers:
        topics = yield from failed_topics(
            marker.topics, named, lambda topic: topic.partition_indexes, error_fields
        )
        markers.append({"producer_id": marker.producer_id, "topics": topics})
        yield
    return Ruling({"markers": markers})


def describe_transactions(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each transactional id; show only topics with DESCRIBE."""
    access, body = request.access, request.body
    ids = yield from once(body.transactional_ids)
    body.transactional_ids, denied_ids = yield from split(
        access, DESCRIBE_TRANSACTIONAL_ID, ids, str
    )
    denied = set(denied_ids)

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        results = iter(answer["transaction_states"])
        states: list[Mapping[str, Any]] = []
        for count, transactional_id in enumerate(ids, 1):
            if count % STEP == 0:
                yield
            if transactional_id in denied:
                error = int(TRANSACTIONAL_ID_DENIED)
                states.append({"transactional_id": transactional_id, "error_code": error})
                continue
            state = next(results)
            topics = state.get("topics", ())
            visible_topics = yield from kept(
                topics, lambda topic: access.may(DESCRIBE_TOPIC, topic["topic"])
            )
            states.append({**state, "topics": visible_topics})
        return with_field(answer, "transaction_states", states)

    return Ruling(merge=merge)


def list_transactions(request: CheckedRequest) -> Ruling:
    """List only transactional ids with DESCRIBE."""
    access = request.access
    return filtering(
        "transaction_states",
        lambda state: access.may(DESCRIBE_TRANSACTIONAL_ID, state["transactional_id"]),
    )
