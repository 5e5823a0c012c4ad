"""AlterPartitionReassignments and ListPartitionReassignments: replicas moved between brokers.

Nothing is moved yet: a target that says what is so already is answered without error, anything
else is refused. Reassignments that another controller began are listed.

Source: Kafka's ReplicationControlManager.alterPartitionReassignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.operation import ControllerResult
from wirebroker.coordinator.controller.placement import check_manual_assignment

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.cluster_image import ClusterImage, PartitionImage
    from wirebroker.coordinator.controller.operation import Operation

# Partitions looked at between two places where the operation may be interrupted.
_SLICE = 512


def alter_reassignments(request: Any, image: ClusterImage) -> Operation[dict[str, Any]]:
    """Judge each partition's target by itself."""
    keeps_factor = not request.allow_replication_factor_change
    responses = [
        {
            "name": topic.name,
            "partitions": [
                _response(image, topic.name, target, keeps_factor=keeps_factor)
                for target in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    yield
    # As Kafka: an answer to nothing has an empty message instead of none.
    response = {
        "allow_replication_factor_change": request.allow_replication_factor_change,
        "error_message": None if request.topics else "",
        "responses": responses,
    }
    return ControllerResult(response)


def list_reassignments(request: Any, image: ClusterImage) -> Operation[dict[str, Any]]:
    """Name those under way, of the partitions asked for."""
    if request.topics is None:
        wishes = ((topic.name, tuple(topic.partitions)) for topic in image.topics.values())
    else:
        wishes = ((topic.name, tuple(topic.partition_indexes)) for topic in request.topics)
    topics: list[dict[str, Any]] = []
    looked_at = 0
    for name, indexes in wishes:
        found: list[dict[str, Any]] = []
        for index in indexes:
            partition = image.partition(name, index)
            if partition is not None and _is_moving(partition):
                found.append(_ongoing(partition))
            looked_at += 1
            if looked_at % _SLICE == 0:
                yield
        if found:
            topics.append({"name": name, "partitions": found})
    return ControllerResult({"error_message": None, "topics": topics})


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
        f"The replicas of {name}-{index} cannot be moved: replicas stay where they are yet.",
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
