"""AlterPartition: accepted changes of an ISR, and fencing of the others."""

from typing import Any

import pytest

from tests.support.coordinators.controller_kit import InstantController
from tests.support.coordinators.kit import partition_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.features.feature_control import feature_level


@pytest.fixture
def controller():
    made = InstantController(feature_level("metadata.version", 30))
    made.serve(1, 2, 3)
    made.create("t", [1, 2, 3])
    return made


def ask(controller, isr, *, broker_id=1, broker_epoch=None, version=3, **fields):
    """Request an ISR as its leader would; `fields` are of the partition."""
    partition = partition_of(controller.image, "t")
    brokers = controller.image.brokers
    values: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
    }
    if version == 3:
        values["new_isr_with_epochs"] = [
            {
                "broker_id": replica,
                "broker_epoch": brokers[replica].epoch if replica in brokers else 1,
            }
            for replica in isr
        ]
    else:
        values["new_isr"] = isr
    answer = controller.ask(
        ApiKey.ALTER_PARTITION,
        version,
        broker_id=broker_id,
        broker_epoch=brokers[1].epoch if broker_epoch is None else broker_epoch,
        topics=[
            {"topic_id": controller.image.topics["t"].topic_id, "partitions": [values | fields]}
        ],
    )
    if "error_code" in answer:
        return ErrorCode(answer["error_code"]), None
    [result] = answer["topics"][0]["partitions"]
    return ErrorCode(result.get("error_code", 0)), result


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_shrinks_and_grows_its_isr_within_its_epoch(controller, version):
    for isr in ([1, 3], [1, 3, 2]):
        code, result = ask(controller, isr, version=version)
        partition = partition_of(controller.image, "t")
        assert code is ErrorCode.NONE
        assert partition.isr == tuple(isr)
        assert result["isr"] == isr
        assert result["partition_epoch"] == partition.partition_epoch
        assert (result["leader_id"], result["leader_epoch"]) == (1, 0)


def test_unchanged_isr_writes_nothing(controller):
    code, result = ask(controller, [1, 2, 3])
    assert (code, result["isr"], controller.records) == (ErrorCode.NONE, [1, 2, 3], [])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"partition_index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_request_with_another_epoch_is_fenced(controller, fields, code):
    assert ask(controller, [1, 2], **fields)[0] is code
    assert not controller.records


@pytest.mark.parametrize("isr", [[2, 3], [1, 1], [1, 4], []])
def test_isr_must_have_the_leader_once_and_only_replicas(controller, isr):
    assert ask(controller, isr)[0] is ErrorCode.INVALID_REQUEST


def test_the_leader_alone_changes_its_isr(controller):
    epoch = controller.image.brokers[2].epoch
    assert ask(controller, [2], broker_id=2, broker_epoch=epoch)[0] is ErrorCode.INVALID_REQUEST
    assert ask(controller, [1], broker_epoch=999)[0] is ErrorCode.STALE_BROKER_EPOCH


def test_fenced_stopping_or_restarted_broker_cannot_join_isr(controller):
    ask(controller, [1, 3])
    members = [{"broker_id": 1, "broker_epoch": -1}, {"broker_id": 2, "broker_epoch": 1}]
    assert ask(controller, [], new_isr_with_epochs=members)[0] is ErrorCode.INELIGIBLE_REPLICA
    controller.heartbeat(2, want_fence=True)
    assert ask(controller, [1, 2, 3])[0] is ErrorCode.INELIGIBLE_REPLICA


def test_deleted_topic_is_reported_by_its_id(controller):
    epoch = controller.image.brokers[1].epoch
    topics = [{"topic_id": bytes(15) + b"\x63", "partitions": [{"partition_index": 0}]}]
    answer = controller.ask(ApiKey.ALTER_PARTITION, broker_id=1, broker_epoch=epoch, topics=topics)
    [result] = answer["topics"][0]["partitions"]
    assert result["error_code"] == ErrorCode.UNKNOWN_TOPIC_ID
