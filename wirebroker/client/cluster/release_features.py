"""The levels of features by Kafka release: names of metadata.version, what a release sets.

Source: Apache Kafka 4.4's MetadataVersion and the *Version enumerations of its features.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wirebroker.config.rows.releases import METADATA_VERSIONS

METADATA_VERSION: Final = "metadata.version"
# The last level that is for production in Kafka 4.4; later ones can be named, not set by default.
LATEST_RELEASE: Final = "4.4-IV2"


class ReleasedFeature(NamedTuple):
    """A feature whose levels come with metadata versions.

    Attributes:
        name: The feature.
        since: By level, from level 1: the metadata.version that a release sets it from.
        needs: By level: the metadata.version that the level depends on.
    """

    name: str
    since: tuple[int, ...]
    needs: dict[int, int] = {}  # noqa: RUF012 - a NamedTuple's default


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
    """Return the level of metadata.version of a release, as 4.0 or 4.0-IV2.

    Raises:
        ValueError: There is no such release; the message lists those that can be named.
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
    """Return the name of a level of metadata.version; None if it has none."""
    return next((name for name, each in METADATA_VERSIONS.items() if each == level), None)


def levels_of_release(metadata_level: int) -> dict[str, int]:
    """Return the level of each feature that a release sets, in the order of Kafka's tools."""
    return {each.name: sum(since <= metadata_level for since in each.since) for each in RELEASED}
