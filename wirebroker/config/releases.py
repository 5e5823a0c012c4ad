"""The releases of Apache Kafka whose features a new cluster can begin with.

Each name that Kafka's tools take, with its level of metadata.version. Apache Kafka 4.3 reads levels
up to 30: a cluster that it shall read as well begins with "4.3" and stays there, because no level
above can be lowered to it. Records are never written in forms that earlier releases read.

A leaf.  Source: Kafka's MetadataVersion, KIP-584.
"""

from typing import Final

RELEASES: Final = {
    "4.3": 30,
    "4.3-IV0": 30,
    "4.4": 33,
    "4.4-IV0": 31,
    "4.4-IV1": 32,
    "4.4-IV2": 33,
}
NEWEST_RELEASE: Final = "4.4"
RELEASE_VERSION: Final = "wirebroker.release.version"
NEWEST_LEVEL: Final = RELEASES[NEWEST_RELEASE]


def release_of(metadata_level: int) -> str:
    """Return the newest release whose cluster has no higher level; the oldest one if all have."""
    fitting = {level: name for name, level in RELEASES.items() if level <= metadata_level}
    return fitting[max(fitting)] if fitting else min(RELEASES)
