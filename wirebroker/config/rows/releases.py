"""Releases of Apache Kafka whose features a new cluster can start with.

A cluster for Apache Kafka 4.3, which reads metadata.version levels up to 30, starts with "4.3" and
stays there, because levels 32 and 33 cannot be lowered. Records are never written in earlier
releases' formats.

Source: Kafka's MetadataVersion, KIP-584.
"""

from typing import Final

_FIRST_LEVEL: Final = 7
_NAMES: Final = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0"),
    *("4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
    *("4.4-IV0", "4.4-IV1", "4.4-IV2", "4.5-IV0"),
)
# In the order of their levels; 4.5-IV0 is not released.
METADATA_VERSIONS: Final = {name: level for level, name in enumerate(_NAMES, _FIRST_LEVEL)}
RELEASES: Final = {
    "4.3": METADATA_VERSIONS["4.3-IV0"],
    "4.4": METADATA_VERSIONS["4.4-IV2"],
    **{name: METADATA_VERSIONS[name] for name in ("4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2")},
}
NEWEST_RELEASE: Final = "4.4"
RELEASE_VERSION: Final = "wirebroker.release.version"
NEWEST_LEVEL: Final = RELEASES[NEWEST_RELEASE]


def release_of(metadata_level: int) -> str:
    """Return the newest release of at most this level, or the oldest one."""
    fitting = {level: name for name, level in RELEASES.items() if level <= metadata_level}
    return fitting[max(fitting)] if fitting else min(RELEASES)
