"""Feature levels: those that this broker supports, and the first records of a cluster.

A new cluster finalizes the levels of a new Apache Kafka cluster. Levels in bootstrap.checkpoint are
used as they are.

Source: KIP-584, KIP-778; Kafka's FeatureControlManager and ActivationRecordsGenerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config.rows.release_features import levels_of_release
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

GROUP_VERSION = "group.version"
KRAFT_VERSION = "kraft.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
TRANSACTION_VERSION = "transaction.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
_FIRST_WITH_REGISTERED_CONTROLLERS = 15
_FIRST_WITH_DIRECTORIES = 17
_FIRST_WITH_CORDONED = 30
_FIRST_WITH_CIDR = 32
_FIRST_WITH_UNREGISTERED_CONTROLLERS = 33
# The levels of Apache Kafka 4.4: records of higher levels could be misread.
SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    "metadata.version": (7, NEWEST_LEVEL),
    KRAFT_VERSION: (0, 1),
    GROUP_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    SHARE_VERSION: (0, 2),
    STREAMS_VERSION: (0, 1),
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
}


def feature_level(name: str, level: int) -> MetadataRecord:
    """Return the record that finalizes a feature's level."""
    return metadata_record(RecordType.FEATURE_LEVEL, name=name, feature_level=level)


def has_directory_assignments(features: Mapping[str, int]) -> bool:
    """Return whether replicas have directories (3.7-IV2, KIP-858)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_DIRECTORIES


def has_cordoned_directories(features: Mapping[str, int]) -> bool:
    """Return whether directories can be cordoned (4.3-IV0, KIP-1066)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_CORDONED


def has_address_ranges(features: Mapping[str, int]) -> bool:
    """Return whether an ACL's host may be an address range (4.4-IV1, KIP-1276)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_CIDR


def has_registered_controllers(features: Mapping[str, int]) -> bool:
    """Return whether controllers register themselves (3.7-IV0, KIP-919)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_REGISTERED_CONTROLLERS


def has_unregistered_controllers(features: Mapping[str, int]) -> bool:
    """Return whether controllers can be unregistered (4.4-IV2)."""
    return features.get(METADATA_VERSION, 0) >= _FIRST_WITH_UNREGISTERED_CONTROLLERS


def has_eligible_leader_replicas(features: Mapping[str, int]) -> bool:
    """Return whether a partition's ISR may be empty (KIP-966)."""
    return features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0


def activation_records(
    image: ClusterImage,
    *,
    bootstrap: Sequence[MetadataRecord] = (),
    metadata_level: int = NEWEST_LEVEL,
    min_insync_replicas: int = 1,
) -> list[MetadataRecord]:
    """Return the first records of a new controller.

    In an empty log, a transaction finalizes the feature levels. A transaction that a crash left
    open is aborted.

    `bootstrap` are the records of a formatted directory; `metadata_level` is for metadata.version
    if they have none. `min_insync_replicas` becomes the cluster's (`elr_safety_records`).
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
            first = new_cluster_levels(metadata_level)
            levels = bootstrap_levels(first)
            records += first
        elif METADATA_VERSION not in levels:
            records.append(feature_level(METADATA_VERSION, metadata_level))
        records += bootstrap
        if levels.get(ELIGIBLE_LEADER_REPLICAS):
            records += elr_safety_records(image, min_insync_replicas)
        records.append(metadata_record(RecordType.END_TRANSACTION))
    return records


def new_cluster_levels(metadata_level: int = NEWEST_LEVEL) -> list[MetadataRecord]:
    """Return the records of a new cluster's levels, in Kafka's order."""
    levels = {
        name: level
        for name, level in sorted(levels_of_release(metadata_level).items())
        # As in Kafka, kraft.version is no record.
        if level and name != KRAFT_VERSION
    }
    return [
        feature_level(name, level)
        for name, level in {METADATA_VERSION: metadata_level, **levels}.items()
    ]


def elr_safety_records(image: ClusterImage, min_insync_replicas: int) -> list[MetadataRecord]:
    """Return records that set one min.insync.replicas for all brokers.

    The controller decides with it which replicas are eligible, so it must not depend on the
    leader's broker (KIP-966). `min_insync_replicas` is for clusters without a value.
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
    """Return records that clear eligible replicas after changes of min.insync.replicas.

    Replicas that were eligible under another minimum may lack acknowledged records.
    """
    if not has_eligible_leader_replicas(image.features):
        return []
    return [
        metadata_record(
            RecordType.CLEAR_ELR,
            topic_name=record.body.resource_name
            if record.body.resource_type == ResourceType.TOPIC
            else "",
        )
        for record in records
        if record.type is RecordType.CONFIG and record.body.name == MIN_INSYNC_REPLICAS
    ]


def bootstrap_levels(records: Sequence[MetadataRecord]) -> dict[str, int]:
    """Return the feature levels in a cluster's first records."""
    return {
        record.body.name: record.body.feature_level
        for record in records
        if record.type is RecordType.FEATURE_LEVEL
    }


def check_features(levels: Mapping[str, int]) -> None:
    """Refuse unreadable finalized features.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    for name, level in levels.items():
        lowest, highest = SUPPORTED_FEATURES.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster has finalized {name} at level {level}; levels {lowest} to {highest}"
                " are supported",
            )
