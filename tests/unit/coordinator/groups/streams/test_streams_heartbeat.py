"""StreamsGroupHeartbeat: responses, errors, and what a request leaves if its records fail."""

from dataclasses import replace

import pytest

from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.streams_kit import (
    COUNTS,
    HEARTBEAT_MS,
    StreamsGroups,
    internal,
    subtopology,
    tasks_in,
    topology,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.streams.streams_heartbeat import INTERNAL_TOPICS
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
ALL = {"0": [0, 1, 2]}


def statuses(answer):
    return [TopicStatus(status["status_code"]) for status in answer["status"]]


def test_the_records_and_the_response_of_the_first_member():
    groups = StreamsGroups()
    answer = groups.enter("a", rack="r", tags={"k": "v"}, endpoint=("h", 9), endpoint_epoch=-1)
    assert answer == {
        "member_id": "a",
        "member_epoch": 2,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "task_offset_interval_ms": 60_000,
        "acceptable_recovery_lag": 10_000,
        "active_tasks": [{"subtopology_id": "0", "partitions": [0, 1, 2]}],
        "standby_tasks": [],
        "warmup_tasks": [],
        "partitions_by_user_endpoint": [
            {
                "user_endpoint": {"host": "h", "port": 9},
                "active_partitions": [{"topic": "t", "partitions": [0, 1, 2]}],
                "standby_partitions": [],
            }
        ],
        "status": [],
    }
    group = groups.streams_group()
    assert [record[0] for record in groups.since(0)] == [
        "MEMBER_METADATA",
        "TOPOLOGY",
        "METADATA",
        "TARGET_ASSIGNMENT_MEMBER",
        "TARGET_ASSIGNMENT_METADATA",
        "CURRENT_MEMBER_ASSIGNMENT",
    ]
    assert groups.since(2)[0][1] == {
        "epoch": 2,
        "metadata_hash": group.metadata_hash,
        "validated_topology_epoch": 0,
        "last_assignment_configs": [{"key": "num.standby.replicas", "value": "0"}],
        "stored_description_topology_epoch": -1,
        "failed_description_topology_epoch": -1,
    }
    assert group.metadata_hash
    assert group.state == "Stable"
    assert groups.active("a") == ALL


def test_nothing_is_written_while_nothing_changes():
    groups = StreamsGroups()
    groups.enter("a")
    mark = len(groups.log)
    answer = groups.stay("a")
    assert groups.since(mark) == []
    assert tasks_in(answer) is None
    assert answer["endpoint_information_epoch"] == 0
    assert "partitions_by_user_endpoint" not in answer


def test_tasks_move_to_a_second_member():
    groups = StreamsGroups()
    groups.enter("a")
    groups.advance(1_000)
    assert tasks_in(groups.enter("b")) == {}
    assert tasks_in(groups.stay("a")) == {"0": [0, 1]}
    assert groups.streams_member("a").epoch == 2
    assert tasks_in(groups.stay("b")) is None, "the first one has not given it up"
    groups.stay("a")
    assert groups.streams_member("a").epoch == 3
    assert tasks_in(groups.stay("b")) == {"0": [2]}
    assert groups.streams_group().state == "Stable"


def moved_to_two() -> StreamsGroups:
    """Return a group whose member b has got a task of its epoch later than the epoch."""
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.enter("b")
    groups.stay("a")
    groups.stay("b")
    groups.stay("a")
    assert tasks_in(groups.stay("b")) == {"0": [2]}
    return groups


def test_tasks_of_a_new_epoch_are_repeated_after_a_lost_response():
    """Kafka does not repeat them."""
    groups = moved_to_two()
    groups.beat("b", -1)
    member = groups.streams_member("a")
    # The response with the task that b had, and with the epoch, is lost.
    assert tasks_in(groups.stay("a")) == ALL
    answer = groups.beat("a", member.epoch, active=member.assigned.active)
    assert tasks_in(answer) == ALL
    assert answer["member_epoch"] > member.epoch
    assert tasks_in(groups.stay("a")) is None


def test_tasks_of_the_same_epoch_are_repeated_after_a_lost_response():
    groups = moved_to_two()
    epoch = groups.streams_member("b").epoch
    assert tasks_in(groups.beat("b", epoch, active={})) == {"0": [2]}
    assert tasks_in(groups.beat("b", epoch)) is None, "nothing is reported"


def test_tasks_to_give_up_are_repeated_after_a_lost_response():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.enter("b")
    assert tasks_in(groups.stay("a")) == {"0": [0, 1]}
    assert tasks_in(groups.beat("a", 2, active=ALL)) == {"0": [0, 1]}


def test_tasks_are_not_repeated_without_a_lost_response():
    """A member with the epoch of its tasks has received them, or is still to report them."""
    groups = StreamsGroups()
    groups.enter("a")
    # The second member's tasks are assigned later.
    assert tasks_in(groups.enter("b")) == {}
    epoch = groups.streams_member("a").epoch
    answer = groups.beat("a", epoch, active={})
    assert statuses(answer) == [TopicStatus.ASSIGNMENT_DELAYED]
    assert tasks_in(answer) is None
    groups.advance(1_000)
    assert tasks_in(groups.beat("a", epoch, active={})) == groups.active("a") != {}


def test_standby_tasks_are_in_other_processes():
    groups = StreamsGroups(streams={"num_standby_replicas": 1})
    groups.enter("a")
    assert groups.standby("a") == {}
    groups.enter("b")
    groups.enter("c", process="process of b")
    groups.settle()
    of_b = {**groups.active("b"), **groups.active("c")}
    assert sorted(
        [*groups.active("a")["0"], *groups.active("b")["0"], *groups.active("c")["0"]]
    ) == [0, 1, 2]
    assert sorted(groups.standby("a")["0"]) == sorted(
        [*groups.active("b")["0"], *groups.active("c")["0"]]
    )
    assert of_b


def test_missing_internal_topics_are_requested_until_they_exist():
    groups = StreamsGroups(image=one_broker(*topic("t", 1, partitions=3)))
    answer = groups.enter("a")
    assert statuses(answer) == [TopicStatus.MISSING_INTERNAL_TOPICS]
    assert [each.name for each in answer[INTERNAL_TOPICS]] == ["counts"]
    assert groups.streams_group().state == "NotReady"
    assert groups.stay("a")[INTERNAL_TOPICS] == answer[INTERNAL_TOPICS]
    groups.create_internal(answer)
    groups.advance(1_000)
    answer = groups.stay("a")
    assert tasks_in(answer) == ALL
    assert INTERNAL_TOPICS not in answer
    assert groups.streams_group().state == "Stable"


def test_deleted_topic_takes_the_tasks():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.delete_topic("t")
    answer = groups.stay("a")
    assert statuses(answer) == [TopicStatus.MISSING_SOURCE_TOPICS]
    assert tasks_in(answer) == {}
    groups.create_topic("t", 9, partitions=3)
    groups.stay("a", active={})
    groups.stay("a", active={})
    assert groups.active("a") == ALL


def test_grown_topic_has_more_tasks():
    plain = topology(subtopology("0", "t"))
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a", topology=plain)
    groups.grow_topic("t", 5)
    assert tasks_in(groups.stay("a")) == {"0": [0, 1, 2, 3, 4]}


def test_changelog_of_a_grown_topic_is_a_problem():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.grow_topic("t", 5)
    assert statuses(groups.stay("a")) == [TopicStatus.INCORRECTLY_PARTITIONED_TOPICS]


def test_endpoint_of_a_group_without_its_topics_has_no_partitions():
    """Kafka's coordinator fails here with UNKNOWN_SERVER_ERROR."""
    groups = StreamsGroups()
    nowhere = topology(subtopology("0", "nowhere"))
    answer = groups.enter("a", topology=nowhere, endpoint=("h", 9), endpoint_epoch=-1)
    assert groups.code(answer) is ErrorCode.NONE
    assert statuses(answer) == [TopicStatus.MISSING_SOURCE_TOPICS]
    (entry,) = answer["partitions_by_user_endpoint"]
    assert entry["active_partitions"] == entry["standby_partitions"] == []


def test_endpoints_are_told_when_their_partitions_change():
    groups = StreamsGroups(streams={"num_standby_replicas": 1, "assignment_interval_ms": 0})
    groups.enter("a", endpoint=("one", 1))
    groups.enter("b", endpoint=("two", 2))
    groups.settle()
    known = groups.streams_group().endpoint_epoch
    answer = groups.stay("a", endpoint_epoch=known - 1)
    by_host = {
        entry["user_endpoint"]["host"]: entry for entry in answer["partitions_by_user_endpoint"]
    }
    active, standby = by_host["one"]["active_partitions"], by_host["two"]["standby_partitions"]
    assert active == standby == [{"topic": "t", "partitions": groups.active("a")["0"]}]
    assert "partitions_by_user_endpoint" not in groups.stay("a", endpoint_epoch=known)
    groups.beat("b", -1)
    answer = groups.stay("a", endpoint_epoch=known)
    assert answer["endpoint_information_epoch"] == known + 1
    assert len(answer["partitions_by_user_endpoint"]) == 1


def test_member_that_joins_again_without_its_endpoint_has_none():
    groups = StreamsGroups()
    groups.enter("a", endpoint=("one", 1))
    groups.stay("a")
    assert groups.streams_member("a").user_endpoint == ("one", 1)
    groups.enter("a")
    assert groups.streams_member("a").user_endpoint is None


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (topology(subtopology("0", "t")), ErrorCode.INVALID_REQUEST),
        (topology(*COUNTS.subtopologies, epoch=1), ErrorCode.INVALID_REQUEST),
        (COUNTS, ErrorCode.NONE),
    ],
)
def test_another_topology_is_refused(other, code):
    groups = StreamsGroups()
    groups.enter("a")
    assert groups.code(groups.enter("b", topology=other)) is code


def test_older_topology_is_stale():
    groups = StreamsGroups()
    groups.enter("a", topology=topology(*COUNTS.subtopologies, epoch=1))
    answer = groups.enter("b", topology=topology(subtopology("0", "t")))
    assert TopicStatus.STALE_TOPOLOGY in statuses(answer)
    assert TopicStatus.STALE_TOPOLOGY in statuses(groups.stay("b"))
    assert groups.streams_member("b").topology_epoch == 0


@pytest.mark.parametrize(
    ("epoch", "owned", "code"),
    [
        (9, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        (1, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        (2, {"0": [0]}, ErrorCode.NONE),
        (2, {"0": [2]}, ErrorCode.FENCED_MEMBER_EPOCH),
        (2, None, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_only_the_present_epoch_or_a_repetition_is_accepted(epoch, owned, code):
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.enter("b")
    groups.settle()
    member = groups.streams_member("a")
    assert (member.previous_epoch, member.epoch) == (2, 3)
    assert groups.active("a") == {"0": [0, 1]}
    assert groups.code(groups.beat("a", epoch, active=owned)) is code


@pytest.mark.parametrize(
    "owned", [{"1": [0]}, {"0": [3]}, {"0": [-1]}], ids=["subtopology", "partition", "negative"]
)
def test_tasks_outside_the_topology_are_refused(owned):
    groups = StreamsGroups()
    groups.enter("a")
    assert groups.code(groups.stay("a", active=owned)) is ErrorCode.INVALID_REQUEST


def test_change_of_a_member_starts_a_new_assignment():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.stay("a", client_id="another")
    assert groups.streams_group().epoch == 3
    groups.stay("a", client_id="another", tags={"k": "v"})
    assert groups.streams_group().epoch == 4
    assert groups.streams_member("a").client_tags == {"k": "v"}


def test_group_may_be_full():
    groups = StreamsGroups(streams={"max_size": 1})
    groups.enter("a")
    assert groups.code(groups.enter("b")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.code(groups.enter("a")) is ErrorCode.NONE


def test_shutdown_is_told_until_all_have_left():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.enter("b")
    groups.stay("a", shutdown=True)
    assert TopicStatus.SHUTDOWN_APPLICATION in statuses(groups.stay("b"))
    groups.stay("b", shutdown=True)
    assert groups.streams_group().shutdown_member_id == "a"
    groups.beat("a", -1)
    groups.beat("b", -1)
    assert statuses(groups.enter("c")) == []


def test_missing_tags_are_told_to_clients_that_know_the_status():
    tags = ("zone", "rack")
    groups = StreamsGroups(
        streams={"rack_aware_assignment_tags": tags, "assignment_interval_ms": 0}
    )
    answer = groups.enter("a", tags={"rack": "r"})
    assert statuses(answer) == [TopicStatus.MISSING_CLIENT_TAGS]
    assert "[zone]" in answer["status"][0]["status_detail"]
    assert statuses(groups.stay("a", version=0)) == []
    assert statuses(groups.stay("a", tags={"zone": "z", "rack": "r"})) == []


def test_changed_settings_start_a_new_assignment():
    groups = StreamsGroups()
    groups.enter("a")
    groups.enter("b")
    groups.settle()
    groups.configure(streams_num_standby_replicas="1")
    groups.settle()
    assert groups.streams_group().assignment_configs == {"num.standby.replicas": "1"}
    assert groups.standby("a") == groups.active("b")


def test_own_times_are_told():
    groups = StreamsGroups()
    groups.configure(
        streams_heartbeat_interval_ms="6000",
        streams_task_offset_interval_ms="20000",
        streams_acceptable_recovery_lag="7",
    )
    answer = groups.enter("a")
    assert answer["heartbeat_interval_ms"] == 6_000
    assert answer["task_offset_interval_ms"] == 20_000
    assert answer["acceptable_recovery_lag"] == 7


def test_reported_offsets_decide_where_standby_tasks_go():
    one = topology(subtopology("0", "t", changelogs=[internal("counts")]))
    groups = StreamsGroups(
        image=one_broker(*topic("t", 1), *topic("counts", 2)), streams={"assignment_interval_ms": 0}
    )
    groups.enter("a", topology=one)
    groups.enter("b", topology=one)
    groups.enter("c", topology=one)
    groups.stay("c", offsets=[("0", 0, 5)])
    groups.configure(streams_num_standby_replicas="1")
    groups.settle()
    assert groups.standby("c") == {"0": [0]}
    assert groups.standby("b") == {}
    answer = groups.stay("c", offsets=[("0", 0, 5), ("0", 0, 6)])
    assert groups.code(answer) is ErrorCode.INVALID_REQUEST


def test_stable_member_whose_tasks_differ_from_its_target_gets_them():
    groups = StreamsGroups()
    groups.enter("a")
    group, member = groups.streams_group(), groups.streams_member("a")
    group.put(replace(member, assigned=member.assigned._replace(active={"0": {0: 2}})))
    mark = len(groups.log)
    assert tasks_in(groups.stay("a")) == ALL
    assert [record[0] for record in groups.since(mark)] == [
        "METADATA",
        "TARGET_ASSIGNMENT_METADATA",
        "CURRENT_MEMBER_ASSIGNMENT",
    ]
    assert group.epoch == group.assignment_epoch == 3


@pytest.mark.parametrize("is_new", [True, False])
def test_failed_records_leave_the_group_as_it_was(is_new):
    groups = StreamsGroups()
    if not is_new:
        groups.enter("a")
    before, timers = groups.durable(), len(groups.shard.timers)
    groups.fails_with = NOT_AVAILABLE
    assert groups.code(groups.enter("b", offsets=[("0", 0, 1)])) is NOT_AVAILABLE
    groups.fails_with = None
    assert groups.durable() == before
    assert len(groups.shard.timers) == timers
    groups.enter("b")
    groups.settle()
    assert sorted(
        groups.active("b")["0"] + groups.active("a")["0"] if not is_new else ALL["0"]
    ) == [0, 1, 2]


def test_change_of_topics_is_noticed_after_a_failed_append():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a")
    groups.delete_topic("t")
    groups.fails_with = NOT_AVAILABLE
    assert groups.code(groups.stay("a")) is NOT_AVAILABLE
    groups.fails_with = None
    assert tasks_in(groups.stay("a")) == {}


def test_empty_classic_group_becomes_a_streams_group():
    groups = StreamsGroups()
    groups.commit()
    groups.enter("a")
    assert groups.streams_group().members.keys() == {"a"}
    assert groups.committed() == 5, "its offsets stay"


def test_classic_group_with_members_does_not():
    groups = StreamsGroups()
    groups.stable()
    answer = groups.enter("a")
    assert groups.code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Group g is not a streams group."


def test_empty_streams_group_becomes_a_classic_group():
    groups = StreamsGroups()
    groups.enter("a")
    assert groups.error(groups.join("")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    groups.beat("a", -1)
    groups.stable()
    assert groups.group().state == "Stable"
    assert groups.reloaded().shard.classic("g") is not None


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_unknown_groups_and_members(epoch):
    groups = StreamsGroups()
    instance = "i" if epoch == -2 else None
    answer = groups.beat("a", epoch, instance=instance)
    assert groups.code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    groups.enter("b")
    answer = groups.beat("a", epoch, instance=instance)
    assert groups.code(answer) is ErrorCode.UNKNOWN_MEMBER_ID
