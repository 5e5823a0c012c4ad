"""Features: what brokers support and what is finalized (KIP-584, KIP-1022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.cluster.api_versions import OUR_SOFTWARE
from wirebroker.client.errors import check, explained
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.kafka_client import KafkaClient

# UpdateFeatures' upgrade_type.
UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


class Feature(NamedTuple):
    """One feature: the levels that a broker supports, and the finalized one (0 for none)."""

    name: str
    lowest: int
    highest: int
    level: int


async def features_of(client: KafkaClient) -> list[Feature]:
    """Return the features, by name."""
    return (await features_and_epoch(client))[0]


async def features_and_epoch(client: KafkaClient) -> tuple[list[Feature], int]:
    """Return the features and their metadata offset; -1 if unknown."""
    answer = await client.request(ApiKey.API_VERSIONS, OUR_SOFTWARE)
    check(answer.error_code, "the features cannot be read")
    supported = {feature.name: feature for feature in answer.supported_features}
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    features: list[Feature] = []
    for name in sorted({*supported, *levels}):
        feature = supported.get(name)
        lowest, highest = (0, 0) if feature is None else (feature.min_version, feature.max_version)
        features.append(Feature(name, lowest, highest, levels.get(name, 0)))
    return features, answer.finalized_features_epoch


async def update_features(
    client: KafkaClient, levels: Mapping[str, int], kind: int, *, is_trial: bool
) -> dict[str, str | None]:
    """Change the levels of features, all or none; 0 disables one.

    `kind` is UPGRADE, SAFE_DOWNGRADE, or UNSAFE_DOWNGRADE, which may lose metadata.

    Returns:
        By name, why a feature was refused; None if it was not.
    """

    def body(version: int) -> dict[str, Any]:
        changes: list[dict[str, Any]] = []
        for name, level in levels.items():
            change: dict[str, Any] = {"feature": name, "max_version_level": level}
            change |= {"upgrade_type": kind} if version >= 1 else {"allow_downgrade": kind > 1}
            changes.append(change)
        request = {"timeout_ms": int(client.timeout_s * 1000), "feature_updates": changes}
        return request | ({"validate_only": is_trial} if version >= 1 else {})

    answer = await client.request_of_controller(ApiKey.UPDATE_FEATURES, body)
    check(answer.error_code, "the features cannot be changed", answer.error_message)
    refused = {
        result.feature: explained(result.error_code, result.error_message)
        for result in answer.results
        if result.error_code
    }
    return {name: refused.get(name) for name in levels}
