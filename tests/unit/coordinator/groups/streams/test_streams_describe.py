"""StreamsGroupDescribe: the topology, the members and their tasks."""

import pytest

from tests.support.coordinators.streams_kit import (
    COUNTS,
    StreamsGroups,
    internal,
    subtopology,
    topology,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError

WHOLE = topology(
    subtopology("b", "t", sinks=["r"]),
    subtopology(
        "a",
        repartition=[internal("r", 2)],
        changelogs=[internal("z"), internal("counts", 0, 1, k="v")],
    ),
    epoch=4,
)


def test_a_stable_group():
    groups = StreamsGroups(streams={"num_standby_replicas": 1})
    groups.enter("a", rack="r", tags={"k": "v"}, endpoint=("h", 9), instance="i")
    groups.enter("b")
    groups.settle()
    groups.stay("b", offsets=[("0", 2, 7), ("0", 1, 5)])
    described = groups.describe()
    assert described["group_state"] == "Stable"
    assert (described["group_epoch"], described["assignment_epoch"]) == (3, 3)
    assert described["assignor_name"] == "sticky"
    first, second = sorted(described["members"], key=lambda member: member["member_id"])
    active = [{"subtopology_id": "0", "partitions": groups.active("a")["0"]}]
    standby = [{"subtopology_id": "0", "partitions": groups.active("b")["0"]}]
    tasks = {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": []}
    assert first == {
        "member_id": "a",
        "member_epoch": 3,
        "instance_id": "i",
        "rack_id": "r",
        "client_id": "client",
        "client_host": "/1.2.3.4",
        "topology_epoch": 0,
        "process_id": "process of a",
        "user_endpoint": {"host": "h", "port": 9},
        "client_tags": [{"key": "k", "value": "v"}],
        "task_offsets": [],
        "task_end_offsets": [],
        "assignment": tasks,
        "target_assignment": tasks,
        "is_classic": False,
    }
    assert second["user_endpoint"] is None
    assert second["task_offsets"] == [
        {"subtopology_id": "0", "partition": 1, "offset": 5},
        {"subtopology_id": "0", "partition": 2, "offset": 7},
    ]


def test_the_topology_is_sorted():
    groups = StreamsGroups()
    groups.enter("a", topology=WHOLE)
    described = groups.describe()["topology"]
    assert described["epoch"] == 4
    first, second = described["subtopologies"]
    assert (first["subtopology_id"], second["subtopology_id"]) == ("a", "b")
    assert second["source_topics"] == ["t"]
    assert second["repartition_sink_topics"] == ["r"]
    assert [topic["name"] for topic in first["state_changelog_topics"]] == ["counts", "z"]
    assert first["state_changelog_topics"][0] == {
        "name": "counts",
        "partitions": 0,
        "replication_factor": 1,
        "topic_configs": [{"key": "k", "value": "v"}],
    }


def test_partition_counts_are_shown_when_the_topology_is_ready():
    groups = StreamsGroups()
    groups.enter("a", topology=COUNTS)

    def count():
        (each,) = groups.describe()["topology"]["subtopologies"]
        return each["state_changelog_topics"][0]["partitions"]

    # As in Kafka, the first heartbeat does not leave its result with the group.
    assert count() == 0
    groups.stay("a")
    assert count() == 3
    groups.delete_topic("t")
    groups.stay("a")
    assert count() == 0


def test_unknown_groups():
    groups = StreamsGroups()
    with pytest.raises(KafkaError, match=r"Group g not found\.") as refusal:
        groups.describe()
    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    groups.commit()
    with pytest.raises(KafkaError, match=r"Group g is not a streams group\."):
        groups.describe()
