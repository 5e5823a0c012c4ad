"""Reassignments: their begin, their completion through the ISR, and cancellation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.controller_kit import InstantController
from tests.support.coordinators.kit import partition_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.features.feature_control import feature_level

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage


@pytest.fixture
def controller() -> InstantController:
    made = InstantController(feature_level("metadata.version", 30))
    made.serve(1, 2, 3)
    return made


def partition(controller: InstantController) -> PartitionImage:
    return partition_of(controller.image, "t", 0)


def reassign(controller: InstantController, replicas: list[int] | None, **fields: Any) -> ErrorCode:
    target = {"partition_index": 0, "replicas": replicas}
    answer = controller.ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        topics=[{"name": "t", "partitions": [target]}],
        **fields,
    )
    return ErrorCode(answer["responses"][0]["partitions"][0]["error_code"])


def in_sync(controller: InstantController, *isr: int) -> dict[str, Any]:
    current = partition(controller)
    topic = controller.image.topics["t"]
    members = [
        {"broker_id": broker_id, "broker_epoch": controller.image.brokers[broker_id].epoch}
        for broker_id in isr
    ]
    change = {
        "partition_index": 0,
        "leader_epoch": current.leader_epoch,
        "new_isr_with_epochs": members,
        "partition_epoch": current.partition_epoch,
    }
    answer = controller.ask(
        ApiKey.ALTER_PARTITION,
        broker_id=current.leader,
        broker_epoch=controller.image.brokers[current.leader].epoch,
        topics=[{"topic_id": topic.topic_id, "partitions": [change]}],
    )
    result: dict[str, Any] = answer["topics"][0]["partitions"][0]
    return result


def test_reassignment_completes_when_new_replicas_are_in_sync(
    controller: InstantController,
) -> None:
    controller.create("t", [1, 2])
    assert reassign(controller, [3, 2]) is ErrorCode.NONE
    moving = partition(controller)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == (
        (3, 2, 1),
        (3,),
        (1,),
    )
    assert (moving.leader, moving.isr, moving.leader_epoch) == (1, (1, 2), 0)
    assert moving.directories[0] == controller.image.brokers[3].log_directories[0]
    # The old leader is not among the remaining replicas; the response reports this.
    assert in_sync(controller, 1, 2, 3)["error_code"] == ErrorCode.NEW_LEADER_ELECTED
    moved = partition(controller)
    assert (moved.replicas, moved.adding_replicas, moved.removing_replicas) == ((3, 2), (), ())
    assert (moved.leader, set(moved.isr), moved.leader_epoch) == (3, {2, 3}, 1)
    assert len(moved.directories) == 2


def test_more_replicas_do_not_change_the_leader_or_its_epoch(controller: InstantController) -> None:
    controller.create("t", [1])
    assert reassign(controller, [1, 2, 3]) is ErrorCode.NONE
    assert not in_sync(controller, 1, 2).get("error_code")
    assert partition(controller).adding_replicas == (2, 3)
    assert not in_sync(controller, 1, 2, 3).get("error_code")
    grown = partition(controller)
    assert (grown.replicas, grown.adding_replicas, grown.leader_epoch) == ((1, 2, 3), (), 0)


def test_replica_removal_applies_at_once_in_a_new_epoch(controller: InstantController) -> None:
    controller.create("t", [1, 2, 3])
    assert reassign(controller, [1, 3]) is ErrorCode.NONE
    less = partition(controller)
    assert (less.replicas, less.isr, less.leader, less.leader_epoch) == ((1, 3), (1, 3), 1, 1)


def test_reassignment_is_cancelled(controller: InstantController) -> None:
    controller.create("t", [1, 2])
    reassign(controller, [2, 3])
    assert reassign(controller, None) is ErrorCode.NONE
    back = partition(controller)
    assert (set(back.replicas), back.adding_replicas, back.removing_replicas) == ({1, 2}, (), ())
    assert back.isr == (1, 2)
    assert reassign(controller, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_target_that_changes_the_number_of_replicas_may_be_refused(
    controller: InstantController,
) -> None:
    controller.create("t", [1, 2])
    fixed = {"allow_replication_factor_change": False}
    assert reassign(controller, [1], **fixed) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(controller, [2, 3], **fixed) is ErrorCode.NONE
    # Replicas to be removed are not counted.
    assert reassign(controller, [1, 3], **fixed) is ErrorCode.NONE
    assert reassign(controller, [1, 9]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_fenced_broker_does_not_complete_a_reassignment(controller: InstantController) -> None:
    controller.create("t", [1, 2])
    reassign(controller, [1, 3])
    controller.heartbeat(2, want_fence=True)
    moving = partition(controller)
    assert (moving.isr, moving.adding_replicas, moving.removing_replicas) == ((1,), (3,), (2,))


@pytest.mark.parametrize("level", [0, 1])
def test_unclean_cancel_keeps_isr_within_the_offline_replicas(level: int) -> None:
    controller = InstantController(
        feature_level("metadata.version", 30),
        feature_level("eligible.leader.replicas.version", level),
    )
    controller.serve(1, 2)
    controller.create("t", [1])
    reassign(controller, [2])
    controller.heartbeat(1, want_fence=True)  # no leader
    controller.ask(
        ApiKey.ELECT_LEADERS,
        election_type=1,
        topic_partitions=[{"topic": "t", "partitions": [0]}],
    )
    assert partition(controller).isr == (2,)
    assert reassign(controller, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    setting = {"name": "unclean.leader.election.enable", "config_operation": 0, "value": "true"}
    resource = {"resource_type": 2, "resource_name": "t", "configs": [setting]}
    controller.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource])
    assert reassign(controller, None) is ErrorCode.NONE
    back = partition(controller)
    assert (back.replicas, back.isr, back.leader) == ((1,), (1,), -1)
    assert back.eligible_leader_replicas == ()
    assert not controller.heartbeat(1)["is_fenced"]
    assert partition(controller).leader == 1
