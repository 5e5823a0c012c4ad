"""Conversion of metadata records to partitions and brokers of the image (cluster_image.py).

Source: Kafka's PartitionRegistration.merge, ClusterDelta.
"""

from __future__ import annotations

from typing import Any, Final

from wirebroker.coordinator.controller.image.cluster_image import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    PartitionImage,
    endpoints_of,
    ranges_of,
)

NO_LEADER_CHANGE: Final = -2


def partition_of(body: Any) -> PartitionImage:
    """Return the partition of a Partition record."""
    replicas = tuple(body.replicas)
    return PartitionImage(
        index=body.partition_id,
        replicas=replicas,
        isr=tuple(body.isr),
        leader=body.leader,
        leader_epoch=body.leader_epoch,
        partition_epoch=body.partition_epoch,
        directories=tuple(body.directories) or (MIGRATING_DIRECTORY,) * len(replicas),
        removing_replicas=tuple(body.removing_replicas),
        adding_replicas=tuple(body.adding_replicas),
        leader_recovery_state=body.leader_recovery_state,
        eligible_leader_replicas=tuple(body.eligible_leader_replicas or ()),
        last_known_elr=tuple(body.last_known_elr or ()),
    )


def merge_partition(before: PartitionImage, body: Any) -> PartitionImage:
    """Return a partition after a PartitionChange record.

    A leader in the record, even the same one, raises the leader epoch (metadata.version >= 3.6).
    """
    replicas, directories = before.replicas, before.directories
    if body.replicas is not None:
        placed = dict(zip(replicas, directories, strict=True))
        replicas = tuple(body.replicas)
        directories = tuple(placed.get(replica, UNASSIGNED_DIRECTORY) for replica in replicas)
    if body.directories:
        directories = tuple(body.directories)
    has_leader = body.leader != NO_LEADER_CHANGE
    return PartitionImage(
        index=before.index,
        replicas=replicas,
        isr=_changed(body.isr, before.isr),
        leader=body.leader if has_leader else before.leader,
        leader_epoch=before.leader_epoch + 1 if has_leader else before.leader_epoch,
        partition_epoch=before.partition_epoch + 1,
        directories=directories,
        removing_replicas=_changed(body.removing_replicas, before.removing_replicas),
        adding_replicas=_changed(body.adding_replicas, before.adding_replicas),
        leader_recovery_state=before.leader_recovery_state
        if body.leader_recovery_state < 0
        else body.leader_recovery_state,
        eligible_leader_replicas=_changed(
            body.eligible_leader_replicas, before.eligible_leader_replicas
        ),
        last_known_elr=_changed(body.last_known_elr, before.last_known_elr),
    )


def _changed(ids: list[int] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if ids is None else tuple(ids)


def broker_of(body: Any) -> BrokerImage:
    """Return the broker of a RegisterBroker record."""
    cordoned = body.cordoned_log_dirs
    return BrokerImage(
        node_id=body.broker_id,
        epoch=body.broker_epoch,
        incarnation_id=body.incarnation_id,
        endpoints=endpoints_of(body.end_points),
        features=ranges_of(body.features),
        rack=body.rack,
        fenced=body.fenced,
        in_controlled_shutdown=body.in_controlled_shutdown,
        log_directories=tuple(body.log_dirs),
        cordoned_log_directories=None if cordoned is None else tuple(cordoned),
        is_migrating_zk_broker=body.is_migrating_zk_broker,
    )


def merge_broker(before: BrokerImage, body: Any) -> BrokerImage:
    """Return a broker after a BrokerRegistrationChange record."""
    after = before
    if body.fenced:
        after = after._replace(fenced=body.fenced > 0)
    if body.in_controlled_shutdown:
        after = after._replace(in_controlled_shutdown=body.in_controlled_shutdown > 0)
    if body.log_dirs:
        after = after._replace(log_directories=tuple(body.log_dirs))
    if body.cordoned_log_dirs is not None:
        after = after._replace(cordoned_log_directories=tuple(body.cordoned_log_dirs))
    return after
