"""Brokers with several log directories: placement and failures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.coordinators.controller_kit import InstantController
from tests.support.coordinators.kit import partition_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.brokers.directory_control import assign_replicas
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER, UNASSIGNED_DIRECTORY

LEVELS = feature_level("metadata.version", 30)
ELR = feature_level("eligible.leader.replicas.version", 1)
ONE, TWO, OTHER = (bytes([number]) * 16 for number in (0xA1, 0xA2, 0xB1))


def cluster(*levels: Any) -> InstantController:
    """Return broker 1 with two directories, 2 with one, and topic t on both, led by 1."""
    controller = InstantController(LEVELS, *levels)
    controller.register(1, log_dirs=[ONE, TWO])
    controller.register(2, log_dirs=[OTHER])
    for broker_id in (1, 2):
        assert not controller.heartbeat(broker_id)["is_fenced"]
    controller.create("t", [1, 2], [1, 2])
    return controller


def assign(
    controller: InstantController, node_id: int = 1, **directory_ids: bytes
) -> dict[str, Any]:
    topic_id = controller.image.topics["t"].topic_id
    directories = [
        {
            "id": directory,
            "topics": [{"topic_id": topic_id, "partitions": [{"partition_index": int(name[1:])}]}],
        }
        for name, directory in directory_ids.items()
    ]
    return ask(controller, directories, node_id=node_id)


def ask(controller: InstantController, directories: list[Any], node_id: int = 1) -> dict[str, Any]:
    return controller.ask(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        broker_id=node_id,
        broker_epoch=controller.image.brokers[node_id].epoch,
        directories=directories,
    )


def errors(answer: dict[str, Any]) -> list[int]:
    return [
        partition["error_code"]
        for directory in answer["directories"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
    ]


def state(controller: InstantController, index: int) -> tuple[int, tuple[int, ...]]:
    partition = partition_of(controller.image, "t", index)
    return partition.leader, partition.isr


def test_broker_reports_directories_of_its_replicas():
    controller = cluster()
    before = partition_of(controller.image, "t", 0)
    assert before.directories == (UNASSIGNED_DIRECTORY, OTHER)
    assert errors(assign(controller, p0=ONE, p1=TWO)) == [0, 0]
    after = partition_of(controller.image, "t", 0)
    assert after.directories == (ONE, OTHER)
    assert partition_of(controller.image, "t", 1).directories == (TWO, OTHER)
    # This causes no election.
    assert (after.leader, after.leader_epoch) == (before.leader, before.leader_epoch)
    assert errors(assign(controller, p0=ONE)) == [0]
    assert not controller.records


def test_foreign_replicas_are_refused_individually():
    controller = cluster()
    controller.create("other", [2])
    topic_id = controller.image.topics["t"].topic_id
    other = controller.image.topics["other"].topic_id
    topics = [
        {"topic_id": topic_id, "partitions": [{"partition_index": 0}, {"partition_index": 7}]},
        {"topic_id": other, "partitions": [{"partition_index": 0}]},
        {"topic_id": bytes([9]) * 16, "partitions": [{"partition_index": 0}]},
    ]
    answer = ask(controller, [{"id": TWO, "topics": topics}])
    assert errors(answer) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert len(controller.records) == 1


def test_stale_incarnation_cannot_assign_directories():
    controller = cluster()
    answer = controller.ask(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS, broker_id=1, broker_epoch=0, directories=[]
    )
    assert answer["error_code"] == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(("level", "error"), [(16, ErrorCode.UNSUPPORTED_VERSION), (17, 0)])
def test_directory_assignment_needs_its_metadata_version(level: int, error: int):
    controller = InstantController(feature_level("metadata.version", level))
    controller.serve(1)
    controller.create("t", [1])
    assert assign(controller, p0=ONE).get("error_code", 0) == error
    assert bool(controller.records) == (not error)


def test_partitions_in_failed_directory_get_other_leaders():
    controller = cluster()
    assign(controller, p0=ONE, p1=TWO)
    assert not controller.heartbeat(1, offline_log_dirs=[TWO])["is_fenced"]
    assert state(controller, 0) == (1, (1, 2))
    assert state(controller, 1) == (2, (2,))
    assert controller.image.brokers[1].log_directories == (ONE,)
    controller.heartbeat(1, offline_log_dirs=[TWO])
    assert not controller.records


def test_broker_reports_cordoned_directories():
    controller = cluster()
    controller.heartbeat(1)
    assert not controller.records
    for directories in ([ONE], [ONE, TWO], []):
        assert not controller.heartbeat(1, cordoned_log_dirs=directories)["is_fenced"]
        assert [record.body.cordoned_log_dirs for record in controller.records] == [directories]
        assert controller.image.brokers[1].cordoned_log_directories == tuple(directories)
        controller.heartbeat(1, cordoned_log_dirs=directories[::-1])
        controller.heartbeat(1)  # an older version, which does not report directories
        assert not controller.records
    controller.register(1, log_dirs=[ONE, TWO])
    assert not controller.heartbeat(1, cordoned_log_dirs=[TWO])["is_fenced"]
    assert controller.image.brokers[1].cordoned_log_directories == (TWO,)
    older = InstantController(feature_level("metadata.version", 29))
    older.serve(1)
    older.heartbeat(1, cordoned_log_dirs=[ONE])
    assert not older.records


def test_replica_without_a_known_directory_keeps_leading():
    controller = cluster()
    controller.heartbeat(1, offline_log_dirs=[TWO])
    assert state(controller, 0) == (1, (1, 2))
    # A replica that turns out to be in the failed directory loses its leadership.
    assert errors(assign(controller, p0=TWO)) == [0]
    assert state(controller, 0) == (2, (2,))


@pytest.mark.parametrize("levels", [(), (ELR,)])
def test_sole_replica_leads_again_when_its_directory_returns(levels):
    controller = cluster(*levels)
    controller.create("single", [1])
    topic_id = controller.image.topics["single"].topic_id
    topics = [{"topic_id": topic_id, "partitions": [{"partition_index": 0}]}]
    ask(controller, [{"id": TWO, "topics": topics}])
    controller.heartbeat(1, offline_log_dirs=[TWO])
    assert partition_of(controller.image, "single", 0).leader == NO_LEADER
    for directories, leader in (([ONE], NO_LEADER), ([ONE, TWO], 1)):
        controller.now_ms += 10_000  # its session ends
        restarted = controller.register(
            1,
            log_dirs=directories,
            previous_broker_epoch=controller.image.brokers[1].epoch,
            incarnation_id=bytes([0xC0 + len(directories)]) * 16,
        )
        assert "error_code" not in restarted
        assert not controller.heartbeat(1)["is_fenced"]
        assert partition_of(controller.image, "single", 0).leader == leader


def test_heartbeat_with_failed_directory_defers_the_shutdown_request():
    controller = cluster()
    assign(controller, p0=ONE, p1=TWO)
    answer = controller.heartbeat(1, offline_log_dirs=[TWO], want_shut_down=True)
    assert not answer["should_shut_down"]
    assert state(controller, 1) == (2, (2,))
    controller.heartbeat(1, offline_log_dirs=[TWO], want_shut_down=True)
    assert state(controller, 0)[0] == 2
    assert controller.image.brokers[1].in_controlled_shutdown


def test_a_broker_whose_last_directory_fails_leads_nothing():
    controller = cluster()
    controller.heartbeat(2, offline_log_dirs=[OTHER])
    assert state(controller, 0) == (1, (1,))
    assert controller.heartbeat(2, offline_log_dirs=[OTHER])["is_fenced"] is False
    assert not controller.records


def test_very_many_replicas_of_a_topic_are_assigned_in_steps():
    controller = cluster()
    partitions = [SimpleNamespace(partition_index=0)] * 1_000
    topic = SimpleNamespace(topic_id=bytes(15) + b"x", partitions=partitions)
    request = SimpleNamespace(
        broker_id=1,
        broker_epoch=controller.image.brokers[1].epoch,
        directories=[SimpleNamespace(id=ONE, topics=[topic])],
    )
    steps = assign_replicas(request, controller.image, controller.rules.config)
    assert sum(1 for _ in steps) > 10
