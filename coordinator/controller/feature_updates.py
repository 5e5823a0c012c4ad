"""UpdateFeatures: feature levels raised or lowered, all of a request's or none.

What is supported is what this broker serves (feature_control.SERVED_FEATURES). A lower level has to
be asked for as a downgrade; metadata.version is never lowered, since that could lose records.

Source: KIP-584, KIP-778, KIP-1022; Kafka's FeatureControlManager.updateFeatures.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.cluster_image import METADATA_VERSION
from wirebroker.coordinator.controller.feature_control import SERVED_FEATURES, feature_level
from wirebroker.coordinator.controller.operation import ControllerResult

if TYPE_CHECKING:
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.operation import Operation

_KRAFT_VERSION = "kraft.version"
# Later answers have no results per feature.
_LAST_RESULTS_VERSION = 1


class UpgradeType(IntEnum):
    """What a client says it wants; anything else is refused."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    request: Any, image: ClusterImage, *, version: int
) -> Operation[dict[str, Any]]:
    """Finalize the levels that a request names; the result is an UpdateFeaturesResponse.

    Raises:
        KafkaError: INVALID_UPDATE_VERSION, for the whole request.
    """
    # A feature that is named twice counts as named last.
    updates = {each.feature: each for each in request.feature_updates}
    records: list[MetadataRecord] = []
    for name, update in updates.items():
        level: int = update.max_version_level
        _check(image, name, level, update.upgrade_type)
        if name != _KRAFT_VERSION:
            records.append(feature_level(name, level))
    yield
    response: dict[str, Any] = {"error_code": ErrorCode.NONE, "error_message": None}
    if version <= _LAST_RESULTS_VERSION:
        response["results"] = [
            {"feature": each.feature, "error_code": ErrorCode.NONE, "error_message": "NONE"}
            for each in request.feature_updates
        ]
    return ControllerResult(response, [] if request.validate_only else records)


def refused_updates(request: Any, error: KafkaError) -> dict[str, Any]:
    """Return the answer to a request that is refused."""
    del request
    return {
        "error_code": error.code,
        "error_message": "No feature was updated, since one could not be: "
        + (error.message or error.code.name),
    }


def _check(image: ClusterImage, name: str, level: int, upgrade_type: int) -> None:
    present = image.features.get(name, 0)
    lowest, highest = SERVED_FEATURES.get(name, (0, 0))
    reason = None
    if upgrade_type not in set(UpgradeType):
        reason = "The upgrade type is not known."
    elif level < 0:
        reason = "A level cannot be below 0."
    elif name not in SERVED_FEATURES:
        reason = "The feature is not supported."
    elif level and not lowest <= level <= highest:
        reason = f"Levels {lowest} to {highest} are supported."
    elif level < present and upgrade_type == UpgradeType.UPGRADE:
        reason = "A lower level has to be asked for as a safe or unsafe downgrade."
    elif level > present and upgrade_type != UpgradeType.UPGRADE:
        reason = "A downgrade cannot lead to a higher level."
    elif level < present and name == METADATA_VERSION:
        reason = "A lower metadata.version might lose metadata."
    elif level != present and name == _KRAFT_VERSION:
        reason = "The quorum's voters are static."
    if reason is not None:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION, f"{name} cannot be set to level {level}. {reason}"
        )
