"""UpdateFeatures: which levels may be finalized, all or none."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.coordinators.controller_kit import InstantController
from tests.support.coordinators.kit import CONFIG, broker, image_of, partition_of, run, topic
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config
from wirebroker.coordinator.controller.features.feature_control import (
    activation_records,
    feature_level,
)
from wirebroker.coordinator.controller.features.feature_updates import update_features
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_LEADER,
    ClusterImage,
    ResourceType,
    config_record,
)

UPGRADE, SAFE, UNSAFE = 1, 2, 3
ELR = "eligible.leader.replicas.version"
MINIMUM = "min.insync.replicas"


def update(*levels, at=2, validate_only=False):
    """Send (feature, level, upgrade type) for each; return the levels afterwards."""
    image = image_of(
        feature_level("metadata.version", 30), feature_level("transaction.version", at)
    )
    request = SimpleNamespace(
        feature_updates=[
            SimpleNamespace(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in levels
        ],
        validate_only=validate_only,
    )
    _, after, _ = run(update_features(request, image, CONFIG, node_id=1, version=2), image)
    return after.features


@pytest.mark.parametrize(("at", "to", "kind"), [(2, 0, SAFE), (2, 1, UNSAFE), (0, 2, UPGRADE)])
def test_a_level_is_changed(at, to, kind):
    features = update(("transaction.version", to, kind), at=at)
    assert features.get("transaction.version", 0) == to


def test_a_request_that_only_validates_changes_nothing():
    features = update(("transaction.version", 0, SAFE), validate_only=True)
    assert features["transaction.version"] == 2


@pytest.mark.parametrize(
    "levels",
    [
        [("transaction.version", 1, UPGRADE)],
        [("transaction.version", 3, UPGRADE)],
        [("transaction.version", -1, SAFE)],
        [("transaction.version", 1, 0)],
        [("transaction.version", 1, 4)],
        [("nonsense.version", 1, UPGRADE)],
        [("nonsense.version", 0, UPGRADE)],
        [("metadata.version", 29, UNSAFE)],
        [("metadata.version", 34, UPGRADE)],
        [("kraft.version", 1, UPGRADE)],
        [("transaction.version", 1, SAFE), ("nonsense.version", 1, UPGRADE)],
    ],
)
def test_invalid_level_refuses_the_whole_request(levels):
    with pytest.raises(KafkaError) as raised:
        update(*levels)
    assert raised.value.code is ErrorCode.INVALID_UPDATE_VERSION


def test_a_downgrade_cannot_lead_to_a_higher_level():
    with pytest.raises(KafkaError):
        update(("transaction.version", 2, SAFE), at=1)


def test_current_level_may_be_requested_with_any_upgrade_type():
    for kind in (UPGRADE, SAFE, UNSAFE):
        assert update(("transaction.version", 2, kind))["transaction.version"] == 2


def change(controller, *updates):
    """Send (feature, level, upgrade type) for each; return the error and its message."""
    answer = controller.ask(
        ApiKey.UPDATE_FEATURES,
        feature_updates=[
            {"feature": name, "max_version_level": level, "upgrade_type": kind}
            for name, level, kind in updates
        ],
    )
    return ErrorCode(answer["error_code"]), answer["error_message"]


@pytest.mark.parametrize(
    ("at", "to", "error"),
    [
        (29, 23, ErrorCode.NONE),
        (29, 22, ErrorCode.INVALID_UPDATE_VERSION),
        (31, 30, ErrorCode.NONE),
        (32, 31, ErrorCode.INVALID_UPDATE_VERSION),
        (33, 32, ErrorCode.INVALID_UPDATE_VERSION),
        (33, 30, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_metadata_version_is_lowered_only_to_a_level_with_the_same_records(at, to, error):
    controller = InstantController(feature_level("metadata.version", at))
    assert change(controller, ("metadata.version", to, SAFE))[0] is error
    level = to if error is ErrorCode.NONE else at
    assert controller.image.features["metadata.version"] == level


def test_level_unsupported_by_a_broker_is_not_finalized():
    controller = InstantController(
        feature_level("metadata.version", 30),
        broker(1, features={"metadata.version": (7, 30), ELR: (0, 1)}),
        broker(2, features={"metadata.version": (7, 30)}),
        broker(3, features={"metadata.version": (7, 30), ELR: (0, 1)}, fenced=True),
    )
    error, text = change(controller, (ELR, 1, UPGRADE))
    assert error is ErrorCode.INVALID_UPDATE_VERSION
    assert text.endswith("Broker 2 does not support this feature.")


def test_eligible_leader_replicas_need_a_metadata_version():
    controller = InstantController(feature_level("metadata.version", 22))
    error, text = change(controller, (ELR, 1, UPGRADE))
    assert error is ErrorCode.INVALID_UPDATE_VERSION
    assert text.endswith("because it depends on metadata.version level 23")
    assert change(controller, (ELR, 1, UPGRADE), ("metadata.version", 23, UPGRADE))[0] == 0


def test_enabling_elr_makes_min_insync_replicas_cluster_wide():
    controller = InstantController(
        feature_level("metadata.version", 30),
        config_record(ResourceType.BROKER, "1", MINIMUM, "3"),
        config_record(ResourceType.BROKER, "1", "log.cleaner.threads", "2"),
        config_record(ResourceType.BROKER, "2", MINIMUM, "3"),
        config=Config({"log.dirs": "data", MINIMUM: "2"}, this_broker={MINIMUM: "3"}),
    )
    assert change(controller, (ELR, 1, UPGRADE))[0] is ErrorCode.NONE
    assert [record.type.name for record in controller.records] == ["CONFIG"] * 3 + ["FEATURE_LEVEL"]
    assert controller.image.configs == {
        (ResourceType.BROKER, ""): {MINIMUM: "2"},
        (ResourceType.BROKER, "1"): {"log.cleaner.threads": "2"},
    }
    # The existing ones stay.
    assert change(controller, (ELR, 1, UPGRADE))[0] is ErrorCode.NONE
    assert [record.type.name for record in controller.records] == ["FEATURE_LEVEL"]


def set_minimum(controller, kind, name, value):
    change = {"name": MINIMUM, "config_operation": int(value is None), "value": value}
    resource = {"resource_type": int(kind), "resource_name": name, "configs": [change]}
    answer = controller.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource])
    return ErrorCode(answer["responses"][0]["error_code"])


def with_eligible_leaders():
    """Return a controller of two topics with one replica in sync and the other eligible."""
    fields: dict[str, Any] = {
        "replicas": [1, 2],
        "directories": [bytes(16)] * 2,
        "eligible_leader_replicas": [2],
    }
    controller = InstantController(*activation_records(ClusterImage()), node_id=1)
    controller.serve(1, 2)
    controller.write([*topic("t", 1, **fields), *topic("u", 2, **fields)])
    return controller


@pytest.mark.parametrize(
    ("kind", "name", "eligible"),
    [
        (ResourceType.TOPIC, "t", {"t": (), "u": (2,)}),
        (ResourceType.BROKER, "", {"t": (), "u": ()}),
    ],
)
def test_changed_minimum_clears_eligible_replicas(kind, name, eligible):
    controller = with_eligible_leaders()
    assert set_minimum(controller, kind, name, "2") is ErrorCode.NONE
    replicas = {
        topic: partition_of(controller.image, topic).eligible_leader_replicas for topic in "tu"
    }
    assert replicas == eligible


def test_without_the_feature_no_eligible_leaders_are_recorded():
    controller = InstantController(feature_level("metadata.version", 30))
    controller.serve(1)
    controller.create("t", [1])
    assert set_minimum(controller, ResourceType.TOPIC, "t", "2") is ErrorCode.NONE
    assert [record.type.name for record in controller.records] == ["CONFIG"]
    assert set_minimum(controller, ResourceType.BROKER, "1", "2") is ErrorCode.NONE


def test_replica_eligible_when_elr_was_disabled_may_still_lead():
    controller = with_eligible_leaders()
    controller.heartbeat(2, want_fence=True)
    controller.heartbeat(1, want_fence=True)
    assert partition_of(controller.image, "t").isr == ()
    assert change(controller, (ELR, 0, SAFE))[0] is ErrorCode.NONE
    epoch = controller.image.brokers[2].epoch
    controller.now_ms = 1_000_000
    controller.register(2, incarnation_id=bytes([9]) * 16, previous_broker_epoch=epoch)
    assert partition_of(controller.image, "t").leader == NO_LEADER
    controller.heartbeat(2)
    after = partition_of(controller.image, "t")
    assert (after.leader, after.isr, after.eligible_leader_replicas) == (2, (2,), ())
