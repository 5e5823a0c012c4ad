"""The feature levels of a new cluster, from a release and levels of single features.

Source: Kafka's Formatter, whose messages these are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.config.rows.release_features import (
    LATEST_RELEASE,
    METADATA_VERSION,
    RELEASED,
    levels_of_release,
    release_level,
    release_name,
)
from wirebroker.config.rows.releases import METADATA_VERSIONS, NEWEST_LEVEL
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KRAFT_VERSION: Final = "kraft.version"
_MOST_LEVEL: Final = (1 << 15) - 1
_CHOICES: Final = "--standalone, --initial-controllers, or --no-initial-controllers"


class FirstLevels(NamedTuple):
    """The levels of a new cluster.

    Attributes:
        metadata_level: That of metadata.version.
        levels: Those of the other features that are above 0, by name in order.
        kraft_level: That of kraft.version, which no feature record has.
    """

    metadata_level: int
    levels: dict[str, int]
    kraft_level: int

    @property
    def recorded(self) -> dict[str, int]:
        """The levels that feature records finalize, in Kafka's order."""
        return {METADATA_VERSION: self.metadata_level, **self.levels}

    @property
    def release(self) -> str:
        """The name of the metadata.version."""
        return release_name(self.metadata_level) or ""


def first_levels(
    release: str | None, features: Mapping[str, int], *, is_dynamic: bool
) -> FirstLevels:
    """Return a new cluster's levels.

    Args:
        release: The release, or None for the latest.
        features: Levels that differ from the release's.
        is_dynamic: Whether the metadata log contains the voters.

    Raises:
        ConfigError: A level is unknown or impossible.
    """
    metadata_level = _metadata_level(release, features)
    requested = {name: level for name, level in features.items() if name != METADATA_VERSION}
    highest = {feature.name: len(feature.since) for feature in RELEASED}
    for name in sorted(requested):
        if name not in highest:
            raise ConfigError(
                f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(highest))}"
            )
    kraft_level = _kraft_level(requested.get(KRAFT_VERSION), is_dynamic=is_dynamic)
    levels = {**levels_of_release(metadata_level), **requested, KRAFT_VERSION: kraft_level}
    for name, level in sorted(levels.items()):
        if not 0 <= level <= highest[name]:
            raise ConfigError(f"No feature:{name} with feature level {level}")
        _check_dependency(name, level, metadata_level)
    del levels[KRAFT_VERSION]
    above_zero = {name: level for name, level in sorted(levels.items()) if level}
    return FirstLevels(metadata_level, above_zero, kraft_level)


def parse_levels(texts: Iterable[str]) -> dict[str, int]:
    """Parse NAME=LEVEL texts.

    Raises:
        ConfigError: One is invalid.
    """
    return dict(parse_level(text) for text in texts)


def parse_level(text: str) -> tuple[str, int]:
    """Parse NAME=LEVEL.

    Raises:
        ConfigError: It is invalid.
    """
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise ConfigError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = int(level)
    except ValueError:
        number = _MOST_LEVEL + 1
    if not -_MOST_LEVEL - 1 <= number <= _MOST_LEVEL:
        raise ConfigError(
            f"Can't parse feature=level string {text}: unable to parse {level} as a short."
        )
    return name, number


def known_release(release: str) -> int:
    """Return a release's metadata.version level.

    Raises:
        ConfigError: The release is unknown.
    """
    try:
        level = release_level(release)
    except ValueError:
        level = NEWEST_LEVEL + 1
    if level > NEWEST_LEVEL:
        released = [name for name, number in METADATA_VERSIONS.items() if number <= NEWEST_LEVEL]
        raise ConfigError(
            f"Unknown metadata.version '{release}'. Supported metadata.version are:"
            f" {', '.join(released)}"
        )
    return level


def _metadata_level(release: str | None, features: Mapping[str, int]) -> int:
    level = features.get(METADATA_VERSION)
    if level is None:
        level = known_release(release or LATEST_RELEASE)
    elif release is not None:
        raise ConfigError(
            f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity."
        )
    elif release_name(level) is None:
        lowest, highest = min(METADATA_VERSIONS.values()), max(METADATA_VERSIONS.values())
        raise ConfigError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from"
            f" {lowest} to {highest}."
        )
    if level > NEWEST_LEVEL:
        raise ConfigError(f"{METADATA_VERSION} {release_name(level)} is not yet stable.")
    return level


def _kraft_level(requested: int | None, *, is_dynamic: bool) -> int:
    if requested is None:
        return int(is_dynamic)
    if requested == 0 and is_dynamic:
        raise ConfigError(
            f"Cannot set {KRAFT_VERSION} to 0 if controller.quorum.voters is empty and one of the"
            f" flags {_CHOICES} is used. For dynamic controllers support, try removing the"
            f" --feature flag for {KRAFT_VERSION}."
        )
    if requested and not is_dynamic:
        raise ConfigError(
            f"Cannot set {KRAFT_VERSION} to {requested} unless controller.quorum.voters is empty"
            f" and one of the flags {_CHOICES} is used. For dynamic controllers support, try using"
            f" one of {_CHOICES} and removing controller.quorum.voters."
        )
    return requested


def _check_dependency(name: str, level: int, metadata_level: int) -> None:
    feature = next(feature for feature in RELEASED if feature.name == name)
    needed = feature.permissions.get(level, 0)
    if metadata_level < needed:
        raise ConfigError(
            f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level"
            f" {needed}"
        )
