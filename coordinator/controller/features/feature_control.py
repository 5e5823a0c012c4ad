"""Feature levels: what this broker can serve, and the records that begin a cluster.

A new cluster finalizes what Apache Kafka finalizes for one of the same release, but the features of
groups that are not served here: group.version, share.version and streams.version. A directory that
Apache Kafka has formatted names its levels in bootstrap.checkpoint: a cluster begins with those, as
it would there. They are kept and reported, and refused only beyond the levels of Kafka 4.4, because
whatever such a level brought into the log could be misread here.

Source: KIP-584, KIP-778; Kafka's FeatureControlManager and ActivationRecordsGenerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config.rows.releases import NEWEST_LEVEL
from wirebroker.coordinator.controller.image.cluster_image import (
    METADATA_VERSION,
    ResourceType,
    config_record,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

MIN_INSYNC_REPLICAS = "min.insync.replicas"
TRANSACTION_VERSION = "transaction.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
_FIRST_WITH_DIRECTORIES = 17
_FIRST_WITH_CORDONED = 30
_FIRST_WITH_CIDR = 32
_FIRST_WITH_UNREGISTERED_CONTROLLERS = 33
# What a cluster of any release begins with besides metadata.version, in Kafka's order.
_NEW_CLUSTER: dict[str, int] = {
    ELIGIBLE_LEADER_REPLICAS: 1,  # KIP-966
    TRANSACTION_VERSION: 2,  # KIP-890: a new epoch with each transaction
}
# The levels of Apache Kafka 4.4 whose records can be replayed.
READABLE_FEATURES: dict[str, tuple[int, int]] = {
    "metadata.version": (7, NEWEST_LEVEL),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    TRANSACTION_VERSION: (0, 2),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
}
# What a registration says this broker supports.
SERVED_FEATURES: dict[str, tuple[int, int]] = {
    "metadata.version": READABLE_FEATURES["metadata.version"],
    "kraft.version": READABLE_FEATURES["kraft.version"],
    TRANSACTION_VERSION: READABLE_FEATURES[TRANSACTION_VERSION],
    ELIGIBLE_LEADER_REPLICAS: READABLE_FEATURES[ELIGIBLE_LEADER_REPLICAS],
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


def has_address_ranges(features: Mapping[str, int]) -> bool:
    """Tell whether the host of an ACL may be a range of addresses (4.4-IV1, KIP-1276)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_CIDR


def has_unregistered_controllers(features: Mapping[str, int]) -> bool:
    """Tell whether a controller can be unregistered (4.4-IV2)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_UNREGISTERED_CONTROLLERS


def has_eligible_leader_replicas(features: Mapping[str, int]) -> bool:
    """Tell whether a partition may be without any replica in sync (KIP-966)."""
    return features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0


def activation_records(
    image: ClusterImage,
    *,
    bootstrap: Sequence[MetadataRecord] = (),
    metadata_level: int = NEWEST_LEVEL,
    min_insync_replicas: int = 1,
) -> list[MetadataRecord]:
    """Return what a controller writes first, with the log as it finds it.

    An empty log begins with one transaction that finalizes the feature levels. A transaction that
    a crash left open is aborted.

    Args:
        image: Of the log.
        bootstrap: The first records of a new cluster, from its formatted directory; empty for a
            log that has begun.
        metadata_level: Level of metadata.version if `bootstrap` names none.
        min_insync_replicas: The broker's setting. Under eligible leader replicas it becomes the
            whole cluster's (KIP-966).
    """
    records: list[MetadataRecord] = []
    if image.open_transaction is not None:
        records.append(
            metadata_record(RecordType.ABORT_TRANSACTION, reason="The controller was restarted")
        )
    if bootstrap or METADATA_VERSION not in image.features:
        levels = bootstrap_levels(bootstrap)
        records.append(metadata_record(RecordType.BEGIN_TRANSACTION, name="Bootstrap records"))
        if not levels:
            levels = _NEW_CLUSTER
            records += new_cluster_levels(metadata_level)
        elif METADATA_VERSION not in levels:
            records.append(feature_level(METADATA_VERSION, metadata_level))
        records += bootstrap
        if levels.get(ELIGIBLE_LEADER_REPLICAS):
            records += elr_safety_records(image, min_insync_replicas)
        records.append(metadata_record(RecordType.END_TRANSACTION))
    return records


def new_cluster_levels(metadata_level: int = NEWEST_LEVEL) -> list[MetadataRecord]:
    """Return the records of the levels that a cluster of a release begins with."""
    levels = {METADATA_VERSION: metadata_level, **_NEW_CLUSTER}
    return [feature_level(name, level) for name, level in levels.items()]


def elr_safety_records(image: ClusterImage, min_insync_replicas: int) -> list[MetadataRecord]:
    """Return what makes eligible leader replicas safe: one min.insync.replicas for all brokers.

    The controller counts by it which replicas are eligible, so it must not depend on the broker
    that leads (KIP-966). What single brokers were given goes.

    Args:
        image: Before.
        min_insync_replicas: The controller's static setting, for a cluster that has none.
    """
    cluster = ResourceType.BROKER
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in image.config(cluster, ""):
        records.append(config_record(cluster, "", MIN_INSYNC_REPLICAS, str(min_insync_replicas)))
    records += [
        config_record(cluster, name, MIN_INSYNC_REPLICAS, None)
        for (kind, name), configs in image.configs.items()
        if kind == cluster and name and MIN_INSYNC_REPLICAS in configs
    ]
    return records


def clear_elr_records(
    image: ClusterImage, records: Sequence[MetadataRecord]
) -> list[MetadataRecord]:
    """Return what follows from records that change min.insync.replicas: nobody is eligible.

    Who was eligible by another minimum may lack what was acknowledged under this one.
    """
    if not has_eligible_leader_replicas(image.features):
        return []
    return [
        metadata_record(
            RecordType.CLEAR_ELR,
            topic_name=each.body.resource_name
            if each.body.resource_type == ResourceType.TOPIC
            else "",
        )
        for each in records
        if each.type is RecordType.CONFIG and each.body.name == MIN_INSYNC_REPLICAS
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
