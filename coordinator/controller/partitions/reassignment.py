"""AlterPartitionReassignments and ListPartitionReassignments: move replicas between brokers.

During a move the target replicas come first, then those to remove. Once all that stay are in sync
(alter_partition.py), the others are removed. A null target cancels a move.

Source: Kafka's ReplicationControlManager.alterPartitionReassignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER
from wirebroker.coordinator.controller.partitions.leader_election import ElectionRules
from wirebroker.coordinator.controller.partitions.partition_change import (
    Assignment,
    Election,
    PartitionDraft,
)
from wirebroker.coordinator.controller.partitions.placement import (
    check_manual_assignment,
    directory_for,
)
from wirebroker.coordinator.controller.requests.operations import (
    declare,
    failure,
    refused_with_message,
)
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, PartitionImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation

# Partitions between two yields.
_SLICE = 512


def alter_reassignments(
    request: Any, image: ClusterImage, config: Config
) -> Operation[dict[str, Any]]:
    """Begin or cancel moves; each partition succeeds or fails separately."""
    moves = _Moves(image, config, keeps_factor=not request.allow_replication_factor_change)
    responses: list[dict[str, Any]] = []
    count = 0
    for topic in request.topics:
        answers: list[dict[str, Any]] = []
        for target in topic.partitions:
            answers.append(moves.begin(topic.name, target))
            count += 1
            if count % _SLICE == 0:
                yield
        responses.append({"name": topic.name, "partitions": answers})
        yield
    yield
    # As in Kafka, an empty request gets an empty message.
    response = {
        "allow_replication_factor_change": request.allow_replication_factor_change,
        "error_message": None if request.topics else "",
        "responses": responses,
    }
    return ControllerResult(response, moves.records.records)


def list_reassignments(request: Any, image: ClusterImage) -> Operation[dict[str, Any]]:
    """List moves in progress."""
    if request.topics is None:
        requested = ((topic.name, tuple(topic.partitions)) for topic in image.topics.values())
    else:
        requested = ((topic.name, tuple(topic.partition_indexes)) for topic in request.topics)
    topics: list[dict[str, Any]] = []
    checked_count = 0
    for name, indexes in requested:
        partitions: list[dict[str, Any]] = []
        for index in indexes:
            partition = image.partition(name, index)
            if partition is not None and _is_moving(partition):
                partitions.append(_ongoing(partition))
            checked_count += 1
            if checked_count % _SLICE == 0:
                yield
        if partitions:
            topics.append({"name": name, "partitions": partitions})
        yield
    return ControllerResult({"error_message": None, "topics": topics})


class _Moves:
    __slots__ = ("_image", "_keeps_factor", "_rules", "records")

    def __init__(self, image: ClusterImage, config: Config, *, keeps_factor: bool) -> None:
        self._image = image
        self._keeps_factor = keeps_factor
        self._rules = ElectionRules(image, config)
        self.records = RecordsOfRequest()

    def begin(self, name: str, target: Any) -> dict[str, Any]:
        error = None
        try:
            self._begin(name, target)
        except KafkaError as failure:
            if failure.code is ErrorCode.POLICY_VIOLATION:
                raise
            error = without_frames(failure)
        return {
            "partition_index": target.partition_index,
            "error_code": int(error.code) if error else 0,
            "error_message": error.message if error else None,
        }

    def _begin(self, name: str, target: Any) -> None:
        index = target.partition_index
        topic = self._image.topics.get(name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            raise KafkaError(unknown, f"Unable to find a topic named {name}.")
        partition = topic.partitions.get(index)
        if partition is None:
            raise KafkaError(unknown, f"Unable to find partition {name}:{index}.")
        rules = self._rules.of(name)
        if target.replicas is None:
            assignment, isr = _canceled(partition)
            if not isr:
                if rules.election is not Election.UNCLEAN:
                    raise KafkaError(
                        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                        f"None of the previous replicas of {name}-{index} is in sync.",
                    )
                isr = assignment.replicas[:1]  # may lack records
        else:
            assignment, isr = (
                self._target_assignment(name, partition, target.replicas),
                partition.isr,
            )
        record = PartitionDraft(
            topic.topic_id,
            partition,
            rules,
            self._rules.active.__contains__,
            isr=isr,
            assignment=assignment,
        ).record()
        if record is not None:
            self.records.add(record)

    def _target_assignment(
        self, name: str, partition: PartitionImage, replicas: list[int]
    ) -> Assignment:
        image, index = self._image, partition.index
        check_manual_assignment(image, replicas, partition=index, replication_factor=None)
        staying = len(set(partition.replicas) - set(partition.removing_replicas))
        if self._keeps_factor and len(replicas) != staying:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {staying} to {len(replicas)}",
            )
        removing = tuple(sorted(set(partition.replicas) - set(replicas)))
        adding = tuple(sorted(set(replicas) - set(partition.replicas)))
        directories = {replica: directory_for(image, replica) for replica in adding}
        return Assignment((*replicas, *removing), removing, adding, directories)


def _canceled(partition: PartitionImage) -> tuple[Assignment, tuple[int, ...]]:
    """Return the assignment and ISR without the new replicas.

    Raises:
        KafkaError: NO_REASSIGNMENT_IN_PROGRESS; INVALID_REPLICA_ASSIGNMENT if no replica is left.
    """
    if not _is_moving(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    adding = partition.adding_replicas
    replicas = tuple(replica for replica in partition.replicas if replica not in adding)
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Cannot cancel: the partition has only replicas that are being added.",
        )
    isr = tuple(replica for replica in partition.isr if replica not in adding)
    return Assignment(replicas), isr


def _is_moving(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _ongoing(partition: PartitionImage) -> dict[str, Any]:
    return {
        "partition_index": partition.index,
        "replicas": list(partition.replicas),
        "adding_replicas": list(partition.adding_replicas),
        "removing_replicas": list(partition.removing_replicas),
    }


def _refused(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    responses: list[dict[str, Any]] = []
    for topic in request.body.topics:
        partitions = (
            {"partition_index": partition.partition_index, **failure(error)}
            for partition in topic.partitions
        )
        responses.append({"name": topic.name, "partitions": (yield from collected(partitions))})
        yield
    return {**failure(error), "responses": responses}


declare(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    lambda case: alter_reassignments(case.body, case.image, case.config),
    permissions=(ALTER_CLUSTER,),
    refuse=_refused,
    subjects=("topics",),
)
declare(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    lambda case: list_reassignments(case.body, case.image),
    permissions=(DESCRIBE_CLUSTER,),
    refuse=refused_with_message,
)
