"""How this node joins its own cluster: registration, unfencing, leaders where there was none.

A one-voter controller and its broker live in one process, so what travels by BrokerRegistration
and BrokerHeartbeat in a larger cluster is written here directly, as the same records.

Source: Kafka's ClusterControlManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.cluster_image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    broker_record,
    feature_ranges,
)
from wirebroker.coordinator.feature_control import SERVED_FEATURES
from wirebroker.coordinator.leader_election import election
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            change = election(topic.topic_id, partition, node_id)
            if change is not None:
                records.append(change)
            looked_at += 1
            if looked_at % _SLICE == 0:
                yield
    return ControllerResult(None, records)
