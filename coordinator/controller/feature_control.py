"""Feature levels: what this broker can serve, and the records that begin a cluster.

A new cluster finalizes metadata.version and transaction.version, the features that work; later ones
are finalized when they are served. A directory that Apache Kafka has formatted names others in its
bootstrap.checkpoint: a cluster begins with those, as it would there. They are kept and reported,
and refused only beyond the levels of Kafka 4.3, because whatever such a level brought into the log
could be misread here.

Source: KIP-584, KIP-778; Kafka's FeatureControlManager and ActivationRecordsGenerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.cluster_image import METADATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.cluster_image import ClusterImage

TRANSACTION_VERSION = "transaction.version"
_ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
_BROKER_CONFIG = 4
_FIRST_WITH_DIRECTORIES = 17
_FIRST_WITH_CORDONED = 30
# 4.3-IV0; records are written at this level, whatever level a log from elsewhere has.
METADATA_VERSION_LEVEL = 30
# KIP-890: a new epoch with each transaction.
_NEWEST_TRANSACTION_VERSION = 2
# The levels of Apache Kafka 4.3 whose records can be replayed.
READABLE_FEATURES: dict[str, tuple[int, int]] = {
    "metadata.version": (7, METADATA_VERSION_LEVEL),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    TRANSACTION_VERSION: (0, 2),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    _ELIGIBLE_LEADER_REPLICAS: (0, 1),
}
# What a registration says this broker supports.
SERVED_FEATURES: dict[str, tuple[int, int]] = {
    "metadata.version": READABLE_FEATURES["metadata.version"],
    "kraft.version": READABLE_FEATURES["kraft.version"],
    TRANSACTION_VERSION: READABLE_FEATURES[TRANSACTION_VERSION],
}


def feature_level(name: str, level: int) -> MetadataRecord:
    """Return the record that finalizes a feature's level."""
    return metadata_record(RecordType.FEATURE_LEVEL, name=name, feature_level=level)


def has_directory_assignments(features: Mapping[str, int]) -> bool:
    """Tell whether the metadata says in which directories replicas lie (3.7-IV2, KIP-858)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_DIRECTORIES


def has_cordoned_directories(features: Mapping[str, int]) -> bool:
    """Tell whether the metadata says which directories are cordoned (4.3-IV0, KIP-1066)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_CORDONED


def has_eligible_leader_replicas(features: Mapping[str, int]) -> bool:
    """Tell whether a partition may be without any replica in sync (KIP-966)."""
    return features.get(_ELIGIBLE_LEADER_REPLICAS, 0) > 0


def activation_records(
    image: ClusterImage,
    *,
    bootstrap: Sequence[MetadataRecord] = (),
    min_insync_replicas: int = 1,
) -> list[MetadataRecord]:
    """Return what a controller writes first, with the log as it finds it.

    An empty log begins with one transaction that finalizes the feature levels. A transaction that
    a crash left open is aborted.

    Args:
        image: Of the log.
        bootstrap: What a formatted directory says a cluster begins with; if that names no
            metadata.version, it is ours.
        min_insync_replicas: The broker's setting. Under eligible leader replicas it becomes the
            whole cluster's (KIP-966).
    """
    records: list[MetadataRecord] = []
    if image.open_transaction is not None:
        records.append(
            metadata_record(RecordType.ABORT_TRANSACTION, reason="The controller was restarted")
        )
    if METADATA_VERSION not in image.features:
        levels = bootstrap_levels(bootstrap)
        records.append(metadata_record(RecordType.BEGIN_TRANSACTION, name="Bootstrap records"))
        if not levels:
            records += new_cluster_levels()
        elif METADATA_VERSION not in levels:
            records.append(feature_level(METADATA_VERSION, METADATA_VERSION_LEVEL))
        records += bootstrap
        if levels.get(_ELIGIBLE_LEADER_REPLICAS):
            records.append(
                metadata_record(
                    RecordType.CONFIG,
                    resource_type=_BROKER_CONFIG,
                    resource_name="",
                    name="min.insync.replicas",
                    value=str(min_insync_replicas),
                )
            )
        records.append(metadata_record(RecordType.END_TRANSACTION))
    return records


def new_cluster_levels() -> list[MetadataRecord]:
    """Return the records of the levels that a cluster begins with if nobody says otherwise."""
    return [
        feature_level(METADATA_VERSION, METADATA_VERSION_LEVEL),
        feature_level(TRANSACTION_VERSION, _NEWEST_TRANSACTION_VERSION),
    ]


def bootstrap_levels(records: Sequence[MetadataRecord]) -> dict[str, int]:
    """Return the feature levels among the records that a cluster begins with."""
    return {
        record.body.name: record.body.feature_level
        for record in records
        if record.type is RecordType.FEATURE_LEVEL
    }


def check_features(levels: Mapping[str, int]) -> None:
    """Refuse a cluster whose finalized features are beyond what can be read here.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    for name, level in levels.items():
        lowest, highest = READABLE_FEATURES.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster has finalized {name} at level {level}; levels {lowest} to {highest}"
                " can be read here",
            )
