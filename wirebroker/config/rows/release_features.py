"""Feature levels of Kafka releases.

Source: Apache Kafka 4.4's MetadataVersion and the *Version enumerations of its features.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wirebroker.config.rows.releases import METADATA_VERSIONS

METADATA_VERSION: Final = "metadata.version"
# The last production level in Kafka 4.4; later ones are not set by default.
LATEST_RELEASE: Final = "4.4-IV2"


class ReleasedFeature(NamedTuple):
    """A feature whose levels depend on metadata.version.

    Attributes:
        since: By level, from 1: the metadata.version whose release sets it.
        needs: By level: the metadata.version that it requires.
    """

    name: str
    since: tuple[int, ...]
    permissions: dict[int, int] = {}  # noqa: RUF012 - a NamedTuple's default


RELEASED: Final = (
    ReleasedFeature("kraft.version", (METADATA_VERSIONS["3.9-IV0"],)),
    ReleasedFeature(
        "transaction.version", (METADATA_VERSIONS["4.0-IV2"], METADATA_VERSIONS["4.0-IV2"])
    ),
    ReleasedFeature("group.version", (METADATA_VERSIONS["4.0-IV0"],)),
    ReleasedFeature(
        "eligible.leader.replicas.version",
        (METADATA_VERSIONS["4.1-IV0"],),
        {1: METADATA_VERSIONS["4.0-IV1"]},
    ),
    ReleasedFeature("share.version", (METADATA_VERSIONS["4.2-IV0"], METADATA_VERSIONS["4.4-IV0"])),
    ReleasedFeature("streams.version", (METADATA_VERSIONS["4.2-IV1"],)),
)


def release_level(release: str) -> int:
    """Return the metadata.version level of a release such as 4.0 or 4.0-IV2.

    Raises:
        ValueError: The release is unknown.
    """
    if release in METADATA_VERSIONS:
        return METADATA_VERSIONS[release]
    of_release = [
        level for name, level in METADATA_VERSIONS.items() if name.startswith(f"{release}-IV")
    ]
    if not of_release:
        raise ValueError(
            f"Unknown metadata.version '{release}'. Supported metadata.version are:"
            f" {', '.join(METADATA_VERSIONS)}"
        )
    return of_release[-1]


def release_name(level: int) -> str | None:
    """Return the name of a metadata.version level, or None."""
    return next(
        (name for name, version_level in METADATA_VERSIONS.items() if version_level == level), None
    )


def levels_of_release(metadata_level: int) -> dict[str, int]:
    """Return the feature levels that a release sets, in the order of Kafka tools."""
    return {
        feature.name: sum(since <= metadata_level for since in feature.since)
        for feature in RELEASED
    }
