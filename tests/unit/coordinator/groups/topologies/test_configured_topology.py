"""A topology with the cluster's topics: partition counts, missing and wrong topics."""

import pytest

from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.streams_kit import internal, subtopology, topology
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.topologies.configured_topology import (
    configure,
    creatable_topic,
    summary,
)
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus
from wirebroker.coordinator.groups.topologies.topology import topology_of

COUNTS = {"t": 3, "u": 5, "v": 3}


def configured(*subtopologies, **more):
    counts = {**COUNTS, **more}
    records = [
        record
        for number, name in enumerate(counts, 1)
        for record in topic(name, number, partitions=counts[name])
    ]
    image = one_broker(*records)
    return configure(topology_of(topology(*subtopologies)), image.topics)


def missing(result):
    return {topic.name: topic.partition_count for topic in result.missing_topics}


def test_topology_whose_topics_exist_is_ready():
    result = configured(subtopology("0", "t", "u"))
    assert result.is_ready
    assert {name: each.task_count for name, each in result.tasks_by_subtopology.items()} == {"0": 5}
    assert not result.tasks_by_subtopology["0"].is_stateful


def test_missing_source_topics_are_named():
    result = configured(subtopology("0", "t", "z", "y"), subtopology("1", "x", "w"))
    assert result.problem.status is TopicStatus.MISSING_SOURCE_TOPICS
    assert result.problem.detail == "Source topics w, x, y and 1 additional topics are missing."
    assert result.tasks_by_subtopology == {}
    assert result.missing_topics == ()


def test_internal_topics_that_are_missing_are_to_be_created():
    log = internal("log", 0, 2, cleanup_policy="compact")
    result = configured(
        subtopology("0", "t", sinks=["r"]),
        subtopology("1", repartition=[internal("r")], changelogs=[log]),
    )
    assert missing(result) == {"r": 3, "log": 3}
    assert result.problem.status is TopicStatus.MISSING_INTERNAL_TOPICS
    assert not result.is_ready
    assert creatable_topic({each.name: each for each in result.missing_topics}["log"]) == {
        "name": "log",
        "num_partitions": 3,
        "replication_factor": 2,
        "assignments": [],
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    assert (
        creatable_topic({each.name: each for each in result.missing_topics}["r"])[
            "replication_factor"
        ]
        == -1
    )


def test_repartition_topic_has_the_largest_count_that_its_writers_read():
    result = configured(
        subtopology("0", "t", "u", sinks=["r"]),
        subtopology("1", repartition=[internal("r")], sinks=["s"]),
        subtopology("2", repartition=[internal("s")]),
    )
    assert missing(result) == {"r": 5, "s": 5}


def test_set_count_is_kept():
    result = configured(
        subtopology("0", "t", sinks=["r"]),
        subtopology("1", "u", repartition=[internal("r", 9)], changelogs=[internal("log")]),
    )
    assert missing(result) == {"r": 9, "log": 9}


@pytest.mark.parametrize(
    ("subtopologies", "text"),
    [
        ([subtopology("0")], "No source topics found"),
        ([subtopology("0", "t", repartition=[internal("r")])], "never used as a sink topic"),
        ([subtopology("0", repartition=[internal("r")], sinks=["r"])], "may be loops"),
    ],
)
def test_invalid_topology_is_refused(subtopologies, text):
    with pytest.raises(KafkaError, match=text) as refusal:
        configured(*subtopologies)
    assert refusal.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.mark.parametrize(
    "each",
    [
        subtopology("0", "t", copartition=[([1], [])]),
        subtopology("0", "t", copartition=[([-1], [])]),
        subtopology("0", "t", repartition=[internal("r", -1)], sinks=["r"]),
    ],
)
def test_contradictory_topology_is_an_error(each):
    with pytest.raises(KafkaError) as refusal:
        configured(each)
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_copartitioned_source_topics_need_equal_counts():
    result = configured(subtopology("0", "t", "u", copartition=[([0, 1], [])]))
    assert result.problem.status is TopicStatus.INCORRECTLY_PARTITIONED_TOPICS
    assert result.problem.detail == (
        "Following topics do not have the same number of partitions: [{t=3, u=5}]"
    )
    assert configured(subtopology("0", "t", "v", copartition=[([0, 1], [])])).is_ready


def test_copartitioned_repartition_topic_follows_the_source_topic():
    result = configured(
        subtopology("0", "u", sinks=["r"]),
        subtopology("1", "t", repartition=[internal("r")], copartition=[([0], [0]), ([], [])]),
    )
    assert missing(result) == {"r": 3}


def test_copartitioned_repartition_topics_follow_the_largest():
    result = configured(
        subtopology("0", "t", sinks=["r"]),
        subtopology("1", "u", sinks=["s"]),
        subtopology("2", repartition=[internal("r"), internal("s")], copartition=[([], [0, 1])]),
    )
    assert missing(result) == {"r": 5, "s": 5}


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (
            subtopology("1", "t", repartition=[internal("r", 7)], copartition=[([0], [0])]),
            "[7] of repartition topic [r] doesn't match number of partitions [3]",
        ),
        (
            subtopology(
                "1", repartition=[internal("r", 7), internal("s", 8)], copartition=[([], [0, 1])]
            ),
            "do not have the same number of partitions: [{r=7, s=8}]",
        ),
    ],
)
def test_set_count_that_differs_is_a_problem(each, text):
    result = configured(subtopology("0", "u", sinks=["r", "s"]), each)
    assert result.problem.status is TopicStatus.INCORRECTLY_PARTITIONED_TOPICS
    assert text in result.problem.detail


def test_existing_internal_topic_with_another_count_is_a_problem():
    result = configured(subtopology("0", "t", changelogs=[internal("log")]), log=2)
    assert result.problem.detail == (
        "Existing topic log has different number of partitions: expected 3, found 2"
    )
    assert configured(subtopology("0", "t", changelogs=[internal("log")]), log=3).is_ready


def test_summary_shows_three_names():
    assert summary("abc") == "a, b, c"
    assert summary("abcde") == "a, b, c and 2 additional topics"
