"""UpdateFeatures: which levels may be finalized, and that all are or none."""

from types import SimpleNamespace

import pytest

from tests.unit.coordinator.kit import image_of, run
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.feature_control import feature_level
from wirebroker.coordinator.controller.feature_updates import update_features

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(*levels, at=2, validate_only=False):
    """Ask for (feature, level, upgrade type) each; return the levels afterwards."""
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
    _, after, _ = run(update_features(request, image, version=2), image)
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
        [("metadata.version", 31, UPGRADE)],
        [("kraft.version", 1, UPGRADE)],
        [("transaction.version", 1, SAFE), ("nonsense.version", 1, UPGRADE)],
    ],
)
def test_what_cannot_be_is_refused_with_all_that_was_asked_with_it(levels):
    with pytest.raises(KafkaError) as raised:
        update(*levels)
    assert raised.value.code is ErrorCode.INVALID_UPDATE_VERSION


def test_a_downgrade_cannot_lead_to_a_higher_level():
    with pytest.raises(KafkaError):
        update(("transaction.version", 2, SAFE), at=1)


def test_the_present_level_may_be_asked_for_by_any_name():
    for kind in (UPGRADE, SAFE, UNSAFE):
        assert update(("transaction.version", 2, kind))["transaction.version"] == 2
