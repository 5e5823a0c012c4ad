"""Feature levels: what this broker can serve, and the records that begin a cluster.

A new cluster finalizes metadata.version only, the one feature that works; later features are
finalized when they are served. A log that Apache Kafka wrote may have others: they are kept and
reported, and refused only beyond the levels of Kafka 4.3, because whatever such a level brought
into the log could be misread here.

Source: KIP-584, KIP-778; Kafka's FeatureControlManager and ActivationRecordsGenerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.cluster_image import METADATA_VERSION

if TYPE_CHECKING:
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.cluster_image import ClusterImage

# 4.3-IV0; records are written at this level, whatever level a log from elsewhere has.
METADATA_VERSION_LEVEL = 30
# The levels of Apache Kafka 4.3 whose records can be replayed.
READABLE_FEATURES: dict[str, tuple[int, int]] = {
    "metadata.version": (7, METADATA_VERSION_LEVEL),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
}
# What a registration says this broker supports.
SERVED_FEATURES: dict[str, tuple[int, int]] = {
    "metadata.version": READABLE_FEATURES["metadata.version"],
    "kraft.version": READABLE_FEATURES["kraft.version"],
}


def feature_level(name: str, level: int) -> MetadataRecord:
    """Return the record that finalizes a feature's level."""
    return metadata_record(RecordType.FEATURE_LEVEL, name=name, feature_level=level)


def activation_records(image: ClusterImage) -> list[MetadataRecord]:
    """Return what a controller writes first, with the log as it finds it.

    An empty log begins with one transaction that finalizes the feature levels. A transaction that
    a crash left open is aborted.
    """
    records: list[MetadataRecord] = []
    if image.open_transaction is not None:
        records.append(
            metadata_record(RecordType.ABORT_TRANSACTION, reason="The controller was restarted")
        )
    if METADATA_VERSION not in image.features:
        records += (
            metadata_record(RecordType.BEGIN_TRANSACTION, name="Bootstrap records"),
            feature_level(METADATA_VERSION, METADATA_VERSION_LEVEL),
            metadata_record(RecordType.END_TRANSACTION),
        )
    return records


def check_features(image: ClusterImage) -> None:
    """Refuse a cluster whose features are beyond what can be read here.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    for name, level in image.features.items():
        lowest, highest = READABLE_FEATURES.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster has finalized {name} at level {level}; levels {lowest} to {highest}"
                " can be read here",
            )
