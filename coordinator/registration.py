"""How this node joins its own cluster: registration, unfencing, leaders where there was none.

A one-voter controller and its broker live in one process, so what travels by BrokerRegistration
and BrokerHeartbeat in a larger cluster is written here directly, as the same records.

Source: Kafka's ClusterControlManager and the leader election of ReplicationControlManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.cluster_image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    broker_record,
    feature_ranges,
)
from wirebroker.coordinator.feature_control import SERVED_FEATURES
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.operation import Operation

# BrokerRegistrationChange.fenced and .in_controlled_shutdown
_UNFENCE = -1
# Partitions looked at between two places where the operation may be interrupted.
_SLICE = 512


def register(
    image: ClusterImage,
    *,
    node_id: int,
    incarnation_id: bytes,
    endpoints: Sequence[Endpoint],
    log_directories: Sequence[bytes],
    rack: str | None,
) -> Operation[int]:
    """Register this node as controller and, fenced, as broker; the result is its broker epoch.

    The broker epoch is the offset of the broker's record, the second one.
    """
    controller = metadata_record(
        RecordType.REGISTER_CONTROLLER,
        controller_id=node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        end_points=[],
        features=feature_ranges(SERVED_FEATURES),
    )
    epoch = image.offset + 1
    broker = BrokerImage(
        node_id=node_id,
        epoch=epoch,
        incarnation_id=incarnation_id,
        endpoints={each.name: each for each in endpoints},
        features=SERVED_FEATURES,
        rack=rack,
        fenced=True,
        in_controlled_shutdown=False,
        log_directories=tuple(log_directories),
    )
    yield
    return ControllerResult(epoch, [controller, broker_record(broker)])


def unfence(image: ClusterImage, *, node_id: int) -> Operation[None]:
    """Let this broker serve, and give it the partitions that have no leader but it."""
    broker = image.brokers[node_id]
    records = [
        metadata_record(
            RecordType.BROKER_REGISTRATION_CHANGE,
            broker_id=node_id,
            broker_epoch=broker.epoch,
            fenced=_UNFENCE,
            cordoned_log_dirs=[],
        )
    ]
    looked_at = 0
    for topic in image.topics.values():
        for partition in topic.partitions.values():
            change = _election(topic.topic_id, partition, node_id)
            if change is not None:
                records.append(change)
            looked_at += 1
            if looked_at % _SLICE == 0:
                yield
    return ControllerResult(None, records)


def _election(topic_id: bytes, partition: PartitionImage, node_id: int) -> MetadataRecord | None:
    """Return the change that makes this node the leader, if it may be and nobody is.

    Apache Kafka leaves partitions without a leader when its last broker shuts down, with the
    replica in the ISR or, with eligible leader replicas (KIP-966), beside it.
    """
    if partition.leader != NO_LEADER:
        return None
    if node_id in partition.isr:
        return metadata_record(
            RecordType.PARTITION_CHANGE,
            partition_id=partition.index,
            topic_id=topic_id,
            leader=node_id,
        )
    eligible = partition.eligible_leader_replicas or partition.last_known_elr
    if partition.isr or node_id not in eligible:
        return None
    return metadata_record(
        RecordType.PARTITION_CHANGE,
        partition_id=partition.index,
        topic_id=topic_id,
        leader=node_id,
        isr=[node_id],
        eligible_leader_replicas=[
            each for each in partition.eligible_leader_replicas if each != node_id
        ],
        last_known_elr=[],
    )
