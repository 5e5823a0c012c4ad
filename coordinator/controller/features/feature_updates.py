"""UpdateFeatures: raise or lower feature levels, atomically.

A lower level must be requested as a downgrade; metadata.version is lowered only to a level with the
same records. kraft.version is a level of the quorum, not a record of the image.

Source: KIP-584, KIP-778, KIP-1022; Kafka's FeatureControlManager.updateFeatures, with its texts,
which admin clients show.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import ALTER_CLUSTER
from wirebroker.coordinator.controller.features.feature_control import (
    ELIGIBLE_LEADER_REPLICAS,
    MIN_INSYNC_REPLICAS,
    SUPPORTED_FEATURES,
    elr_safety_records,
    feature_level,
)
from wirebroker.coordinator.controller.image.cluster_image import METADATA_VERSION, ranges_of
from wirebroker.coordinator.controller.requests.operations import declare
from wirebroker.coordinator.controller.requests.request import FixedLevel
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest, QuorumLevel
    from wirebroker.coordinator.operation import Operation

_KRAFT_VERSION: Final = "kraft.version"
_NO_QUORUM: Final = FixedLevel()
# Later responses have no results per feature.
_LAST_RESULTS_VERSION: Final = 1
# Levels of metadata.version with other records than the level before (Kafka's MetadataVersion).
_OTHER_RECORDS: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
# metadata.version that a feature needs above level 0.
_NEEDS: Final = {ELIGIBLE_LEADER_REPLICAS: 23}


class UpgradeType(IntEnum):
    """The requested kind of change."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    request: Any,
    image: ClusterImage,
    config: Config,
    *,
    node_id: int,
    version: int,
    kraft: QuorumLevel = _NO_QUORUM,
) -> Operation[dict[str, Any]]:
    """Finalize feature levels.

    kraft.version is raised last, and before other records are appended: these run this again.

    Raises:
        KafkaError: INVALID_UPDATE_VERSION, for the whole request.
    """
    # The last update of a feature counts.
    updates: dict[str, Any] = {}
    for feature_update in request.feature_updates:
        updates[feature_update.feature] = feature_update
        yield
    requested_levels: dict[str, int] = {}
    for name, update in updates.items():
        requested_levels[name] = update.max_version_level
        yield
    records: list[MetadataRecord] = []
    levels = {**image.features, **requested_levels}
    for name, level in requested_levels.items():
        _Change(image, node_id, name, level, updates[name].upgrade_type, levels, kraft).check()
        yield
        if name != _KRAFT_VERSION:
            records.append(feature_level(name, level))
    yield
    if requested_levels.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        minimum = config.static_int(MIN_INSYNC_REPLICAS)
        records = [*elr_safety_records(image, minimum), *records]
    if _KRAFT_VERSION in requested_levels and not request.validate_only:
        kraft.upgrade(requested_levels[_KRAFT_VERSION], is_dry_run=False)
    response: dict[str, Any] = {"error_code": ErrorCode.NONE, "error_message": None}
    if version <= _LAST_RESULTS_VERSION:
        response["results"] = [
            {
                "feature": feature_update.feature,
                "error_code": ErrorCode.NONE,
                "error_message": "NONE",
            }
            for feature_update in request.feature_updates
        ]
    return ControllerResult(response, [] if request.validate_only else records)


def _refused(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    del request
    yield
    return {
        "error_code": error.code,
        "error_message": "The update failed for all features since the following feature had an"
        f" error: {error.message or error.code.name}",
    }


class _Change:
    def __init__(  # noqa: PLR0917 - one place makes it
        self,
        image: ClusterImage,
        node_id: int,
        name: str,
        level: int,
        kind: int,
        proposed: Mapping[str, int],
        kraft: QuorumLevel,
    ) -> None:
        self._image = image
        self._node_id = node_id
        self._name = name
        self._level = level
        self._kind = kind
        self._proposed = proposed
        self._kraft = kraft

    def check(self) -> None:
        reason = next(self._refusals(), None)
        if reason is not None:
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, reason)

    def _refusals(self) -> Iterator[str]:
        """Yield reasons in Kafka's order."""
        beginning = f"Invalid update version {self._level} for feature {self._name}. "
        for reason in self._level_refusals():
            yield beginning + reason
        present = self._present
        if self._name != METADATA_VERSION or _OTHER_RECORDS.isdisjoint(
            range(self._level + 1, present + 1)
        ):
            return
        beginning = f"Unsupported metadata.version downgrade from {present} to {self._level}. "
        if self._kind == UpgradeType.UNSAFE_DOWNGRADE:
            yield beginning + "Unsafe metadata downgrade is not supported in this version."
        else:
            yield (
                beginning + "Refusing to perform the requested downgrade because it might delete"
                " metadata information."
            )

    @property
    def _present(self) -> int:
        if self._name == _KRAFT_VERSION:
            return self._kraft.level
        return self._image.features.get(self._name, 0)

    def _level_refusals(self) -> Iterator[str]:
        name, level, present = self._name, self._level, self._present
        if self._kind not in set(UpgradeType):
            yield "The controller does not support the given upgrade type."
        if level < 0:
            yield "A feature version cannot be less than 0."
        for node, (lowest, highest) in self._supported():
            if not lowest <= level <= highest:
                yield _not_supported(node, lowest, highest)
        if level < present and self._kind == UpgradeType.UPGRADE:
            yield (
                "Can't downgrade the version of this feature without setting the upgrade type to"
                " either safe or unsafe downgrade."
            )
        if level > present and self._kind != UpgradeType.UPGRADE:
            yield "Can't downgrade to a newer version."
        if name not in SUPPORTED_FEATURES:
            yield f"Feature {name} not found."
        if name == _KRAFT_VERSION:
            yield from self._quorum_refusals()
        needed = _NEEDS.get(name, 0) if level else 0
        if self._proposed.get(METADATA_VERSION, 0) < needed:
            yield (
                f"{name} could not be set to {level} because it depends on metadata.version level"
                f" {needed}"
            )

    def _quorum_refusals(self) -> Iterator[str]:
        try:
            self._kraft.upgrade(self._level, is_dry_run=True)
        except KafkaError as error:
            yield error.message or error.code.name

    def _supported(self) -> Iterator[tuple[str, tuple[int, int]]]:
        name, image = self._name, self._image
        yield f"Local controller {self._node_id}", SUPPORTED_FEATURES.get(name, (0, 0))
        for broker in image.brokers.values():
            yield f"Broker {broker.node_id}", broker.features.get(name, (0, 0))
        for node_id, record in image.controllers.items():
            if node_id != self._node_id:
                features = ranges_of(record.body.features)
                yield f"Controller {node_id}", features.get(name, (0, 0))


def _not_supported(node: str, lowest: int, highest: int) -> str:
    if highest == 0:
        return f"{node} does not support this feature."
    levels = str(lowest) if lowest == highest else f"{lowest}-{highest}"
    return f"{node} only supports versions {levels}"


declare(
    ApiKey.UPDATE_FEATURES,
    lambda case: update_features(
        case.body,
        case.image,
        case.config,
        node_id=case.rules.node_id,
        version=case.request.version,
        kraft=case.rules.kraft,
    ),
    permissions=(ALTER_CLUSTER,),
    refuse=_refused,
    subjects=("feature_updates",),
)
