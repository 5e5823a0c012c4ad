"""DescribeTopicPartitions: pages, cursors, and topics that do not exist."""

import pytest

import wirebroker.api.topics.describe_topic_partitions  # noqa: F401 - registers the handler
from tests.support.coordinators.kit import DIRECTORY, topic, topic_id
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


def describe(*names, limit=2000, cursor=None, broker=None):
    """Return ([(name, partition indexes)], cursor or None, the whole response)."""
    broker = broker or make_broker(
        *topic("a", 1), *topic("b", 2, partitions=3), *topic("c", 3, partitions=2)
    )
    reply = answer(
        broker,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[{"name": name} for name in names],
        response_partition_limit=limit,
        cursor=cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
    )
    topics = [
        (entry.name, [part.partition_index for part in entry.partitions]) for entry in reply.topics
    ]
    following = reply.next_cursor
    return topics, following and (following.topic_name, following.partition_index), reply


def test_topics_are_described_once_sorted_by_name():
    topics, cursor, _ = describe("c", "a", "c")
    assert topics == [("a", [0]), ("c", [0, 1])]
    assert cursor is None


def test_without_names_all_topics_are_described():
    topics, _, _ = describe()
    assert [name for name, _ in topics] == ["a", "b", "c"]


def test_pages_follow_each_other_without_gaps():
    cursor = None
    partitions = []
    for _ in range(10):
        topics, cursor, _ = describe(limit=2, cursor=cursor)
        partitions += [(name, index) for name, indexes in topics for index in indexes]
        if cursor is None:
            break
    assert partitions == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("c", 1)]


def test_a_page_that_ends_with_a_topic_names_the_next_topic():
    assert describe(limit=1)[:2] == ([("a", [0])], ("b", 0))
    assert describe("a", "nope", limit=1)[:2] == ([("a", [0])], ("nope", 0))


@pytest.mark.parametrize("limit", [0, -5])
def test_a_page_holds_at_least_one_partition(limit):
    assert describe("b", limit=limit)[:2] == ([("b", [0])], ("b", 1))


def test_broker_config_limits_the_page_size():
    broker = make_broker(*topic("b", 2, partitions=3), max_request_partition_size_limit="2")
    assert describe(broker=broker)[:2] == ([("b", [0, 1])], ("b", 2))


def test_cursor_past_the_last_partition_gives_topic_without_partitions():
    assert describe("b", cursor=("b", 7))[:2] == ([("b", [])], None)


@pytest.mark.parametrize("cursor", [("a", 0), ("b", -1)])
def test_invalid_cursor_is_refused(cursor):
    _, _, reply = describe("b", cursor=cursor)
    assert [(entry.name, entry.error_code) for entry in reply.topics] == [
        ("b", ErrorCode.INVALID_REQUEST)
    ]


def test_missing_topics_are_returned_with_an_error():
    _, _, reply = describe("nope", "a b")
    assert [(entry.name, entry.error_code) for entry in reply.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_empty_topic_name_fails_the_whole_request_as_in_kafka():
    _, _, reply = describe("a", "")
    assert {entry.error_code for entry in reply.topics} == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_partition_is_described_with_its_replicas():
    broker = make_broker(
        *topic(
            "__consumer_offsets",
            1,
            replicas=[1, 2],
            directories=[DIRECTORY] * 2,
            eligible_leader_replicas=[2],
        )
    )
    _, _, reply = describe(broker=broker)
    [described] = reply.topics
    assert (described.topic_id, described.is_internal) == (topic_id(1), True)
    assert described.topic_authorized_operations == 3576
    [partition] = described.partitions
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1, 2], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([2], [])
    assert partition.offline_replicas == [2]


def test_unregistered_leader_is_not_returned():
    broker = make_broker(*topic("a", 1, leader=2, isr=[2], replicas=[2]))
    _, _, reply = describe(broker=broker)
    [partition] = reply.topics[0].partitions
    assert (partition.leader_id, partition.offline_replicas) == (-1, [2])
