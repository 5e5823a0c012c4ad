"""Reassignments on one broker; test_reassignment.py covers the moves."""

from tests.support.coordinators.kit import DIRECTORY, broker, topic
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


def alter(node, replicas, *, name="t", version=1, **body):
    target = {"partition_index": 0, "replicas": replicas}
    reply = answer(
        node,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        version,
        topics=[{"name": name, "partitions": [target]}],
        timeout_ms=1000,
        **body,
    )
    [response] = reply.responses
    [partition] = response.partitions
    return partition.error_code


def listed(node, topics):
    reply = answer(node, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=topics, timeout_ms=1000)
    return [
        (topic.name, [part.partition_index for part in topic.partitions]) for topic in reply.topics
    ]


def test_reassignment_to_the_same_replicas_is_accepted():
    node = make_broker(*topic("t", 1))
    assert alter(node, [1]) == 0
    assert alter(node, [1], version=0) == 0


def test_reassignment_needs_registered_brokers_and_same_replica_count():
    node = make_broker(broker(2, fenced=True), *topic("t", 1))
    assert alter(node, [1, 3]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    keeps = alter(node, [1, 2], allow_replication_factor_change=False)
    assert keeps == ErrorCode.INVALID_REPLICATION_FACTOR
    assert alter(node, [1, 2]) == 0


def test_cancelling_without_a_reassignment_is_refused():
    node = make_broker(*topic("t", 1))
    assert alter(node, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert alter(node, None, name="none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_reassignments_in_progress_are_listed():
    moving = topic(
        "moving", 2, replicas=[1, 2], adding_replicas=[2], directories=[DIRECTORY, DIRECTORY]
    )
    node = make_broker(*topic("t", 1), *moving)
    assert listed(node, None) == [("moving", [0])]
    requested = [{"name": name, "partition_indexes": [0, 1]} for name in ("t", "moving", "none")]
    assert listed(node, requested) == [("moving", [0])]
    assert alter(node, None, name="moving") == 0
