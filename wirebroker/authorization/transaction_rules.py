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
    AskedRequest,
    Fields,
    Ruling,
    failed_topics,
    keeping,
    kept,
    named,
    once,
    refused,
    split,
    with_field,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.topic_names import is_internal
from wirebroker.request.needs import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE,
    READ_GROUP,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Steps

# Brokers send these versions, for several transactions.
_FIRST_ADDING_OF_BROKERS: Final = 4
_FIRST_TXN_COMMIT_BY_ID: Final = 6


def init_producer_id(asked: AskedRequest) -> Ruling:
    """Require WRITE of the transactional id, or else IDEMPOTENT_WRITE or WRITE of some topic."""
    asking, body = asked.asking, asked.body
    nothing = {"producer_id": -1, "producer_epoch": -1}
    if body.transactional_id is not None:
        if asking.may(WRITE_TRANSACTIONAL_ID, body.transactional_id):
            return SERVED
        return refused(TRANSACTIONAL_ID_DENIED, **nothing)
    if asking.may(IDEMPOTENT_WRITE, logs_denied=False) or asking.may_some(WRITE_TOPIC):
        return SERVED
    return refused(CLUSTER_DENIED, **nothing)


def add_partitions(asked: AskedRequest) -> Steps[Ruling]:
    """Require WRITE of the transactional id and all topics; one denial fails the whole request."""
    asking, body = asked.asking, asked.body
    if asked.version >= _FIRST_ADDING_OF_BROKERS:
        return SERVED if asking.may(CLUSTER_ACTION) else refused(CLUSTER_DENIED)
    topics = body.v3_and_below_topics
    if not asking.may(WRITE_TRANSACTIONAL_ID, body.v3_and_below_transactional_id):
        return (yield from _not_added(topics, _not_by_this_id))
    plain = [topic for topic in topics if not is_internal(topic.name)]
    _, others = yield from split(asking, WRITE_TOPIC, plain, lambda topic: str(topic.name))
    if not others:
        return SERVED
    names = {topic.name for topic in others}

    def error_of(topic: str, index: int) -> ErrorCode:
        if topic in names or is_internal(topic):
            return TOPIC_DENIED
        if asked.image.partition(topic, index) is None:
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


def add_offsets(asked: AskedRequest) -> Ruling:
    """Require WRITE of the transactional id and READ of the group."""
    asking, body = asked.asking, asked.body
    if not asking.may(WRITE_TRANSACTIONAL_ID, body.transactional_id):
        return refused(TRANSACTIONAL_ID_DENIED)
    if not asking.may(READ_GROUP, body.group_id):
        return refused(GROUP_DENIED)
    return SERVED


def end_txn(asked: AskedRequest) -> Ruling:
    """Require WRITE of the transactional id."""
    if asked.asking.may(WRITE_TRANSACTIONAL_ID, asked.body.transactional_id):
        return SERVED
    return refused(TRANSACTIONAL_ID_DENIED)


def txn_offset_commit(asked: AskedRequest) -> Steps[Ruling]:
    """Require WRITE of the transactional id, READ of the group and of each topic."""
    asking, body = asked.asking, asked.body
    if not asking.may(WRITE_TRANSACTIONAL_ID, body.transactional_id):
        return Ruling({"topics": (yield from of_topics(body.topics, TRANSACTIONAL_ID_DENIED))})
    if not asking.may(READ_GROUP, body.group_id):
        return Ruling({"topics": (yield from of_topics(body.topics, GROUP_DENIED))})
    return (yield from commit_of_topics(asked, by_id=asked.version >= _FIRST_TXN_COMMIT_BY_ID))


def write_txn_markers(asked: AskedRequest) -> Steps[Ruling]:
    """Require ALTER of the cluster or CLUSTER_ACTION."""
    asking = asked.asking
    if asking.may(ALTER_CLUSTER, logs_denied=False) or asking.may(CLUSTER_ACTION):
        return SERVED
    markers: list[Fields] = []
    same = {"error_code": int(CLUSTER_DENIED)}
    for marker in asked.body.markers:
        topics = yield from failed_topics(
            marker.topics, named, lambda topic: topic.partition_indexes, same
        )
        markers.append({"producer_id": marker.producer_id, "topics": topics})
        yield
    return Ruling({"markers": markers})


def describe_transactions(asked: AskedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each transactional id; show only topics with DESCRIBE."""
    asking, body = asked.asking, asked.body
    ids = yield from once(body.transactional_ids)
    body.transactional_ids, others = yield from split(asking, DESCRIBE_TRANSACTIONAL_ID, ids, str)
    hidden = set(others)

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        found = iter(answer["transaction_states"])
        states: list[Mapping[str, Any]] = []
        for count, each in enumerate(ids, 1):
            if count % STEP == 0:
                yield
            if each in hidden:
                error = int(TRANSACTIONAL_ID_DENIED)
                states.append({"transactional_id": each, "error_code": error})
                continue
            state = next(found)
            topics = state.get("topics", ())
            shown = yield from kept(topics, lambda t: asking.may(DESCRIBE_TOPIC, t["topic"]))
            states.append({**state, "topics": shown})
        return with_field(answer, "transaction_states", states)

    return Ruling(merge=merge)


def list_transactions(asked: AskedRequest) -> Ruling:
    """List only transactional ids with DESCRIBE."""
    asking = asked.asking
    return keeping(
        "transaction_states",
        lambda state: asking.may(DESCRIBE_TRANSACTIONAL_ID, state["transactional_id"]),
    )
