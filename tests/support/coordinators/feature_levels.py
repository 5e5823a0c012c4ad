"""The feature levels of new clusters."""

from __future__ import annotations

from typing import Final

# The first metadata.version with dead letters of share groups (4.4-IV0).
_FIRST_WITH_DEAD_LETTERS: Final = 31


def new_cluster_features(metadata_version: int = 33) -> dict[str, int]:
    """Return the levels of a new Apache Kafka cluster of 4.3 or later."""
    return {
        "metadata.version": metadata_version,
        "group.version": 1,
        "share.version": 2 if metadata_version >= _FIRST_WITH_DEAD_LETTERS else 1,
        "streams.version": 1,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
    }
