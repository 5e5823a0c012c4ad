"""AlterPartitionReassignments and ListPartitionReassignments: replicas moved between brokers.

With one broker a partition can only stay where it is: that is answered without error, anything
else is refused, and no reassignment is ever under way. AlterPartitionReassignments v0 is flexible,
v1 may insist on the replication factor (KIP-860); ListPartitionReassignments has v0 (KIP-455).

Source: Kafka's ReplicationControlManager.alterPartitionReassignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.placement import check_manual_assignment

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.coordinator.cluster_image import ClusterImage, PartitionImage


@handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def alter_partition_reassignments(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Judge each partition's target by itself."""
    del request
    image = broker.metadata.image
    keeps_factor = not body.allow_replication_factor_change
    responses = [
        {
            "name": topic.name,
            "partitions": [
                _response(image, topic.name, target, keeps_factor=keeps_factor)
                for target in topic.partitions
            ],
        }
        for topic in body.topics
    ]
    # As Kafka: an answer to nothing has an empty message instead of none.
    return {
        "allow_replication_factor_change": body.allow_replication_factor_change,
        "error_message": None if body.topics else "",
        "responses": responses,
    }


@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def list_partition_reassignments(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Name those that another broker's directory brought along, of the partitions asked for."""
    del request
    image = broker.metadata.image
    if body.topics is None:
        wishes = [(topic.name, tuple(topic.partitions)) for topic in image.topics.values()]
    else:
        wishes = [(topic.name, tuple(topic.partition_indexes)) for topic in body.topics]
    topics: list[dict[str, Any]] = []
    for name, indexes in wishes:
        found = [
            partition
            for index in indexes
            if (partition := image.partition(name, index)) is not None and _is_moving(partition)
        ]
        if found:
            topics.append({"name": name, "partitions": [_ongoing(each) for each in found]})
    return {"error_message": None, "topics": topics}


def _response(image: ClusterImage, name: str, target: Any, *, keeps_factor: bool) -> dict[str, Any]:
    error = None
    try:
        _check(image, name, target, keeps_factor=keeps_factor)
    except KafkaError as failure:
        error = failure
    return {
        "partition_index": target.partition_index,
        "error_code": int(error.code) if error else 0,
        "error_message": error.message if error else None,
    }


def _check(image: ClusterImage, name: str, target: Any, *, keeps_factor: bool) -> None:
    """Accept a target that asks for nothing new.

    Raises:
        KafkaError: Why it is refused.
    """
    index = target.partition_index
    partition = image.partition(name, index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{index}."
        )
    if target.replicas is None and not _is_moving(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    if target.replicas is not None:
        check_manual_assignment(image, target.replicas, partition=index, replication_factor=None)
        if keeps_factor and len(target.replicas) != len(partition.replicas):
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Partition {name}-{index} has {len(partition.replicas)} replica(s).",
            )
        if tuple(target.replicas) == partition.replicas and not _is_moving(partition):
            return
    raise KafkaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"The replicas of {name}-{index} cannot be moved: this cluster has one broker.",
    )


def _is_moving(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _ongoing(partition: PartitionImage) -> dict[str, Any]:
    return {
        "partition_index": partition.index,
        "replicas": list(partition.replicas),
        "adding_replicas": list(partition.adding_replicas),
        "removing_replicas": list(partition.removing_replicas),
    }
