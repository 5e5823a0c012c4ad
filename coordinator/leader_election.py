"""Which replica leads a partition: elections at start and on request.

With one broker there is never a choice, only the question whether its replica may lead: it may if
it is in sync, or if it is the last one known to have been (eligible leader replicas, KIP-966).

Source: Kafka's ReplicationControlManager.electLeaders and PartitionChangeBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.cluster_image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.operation import Operation

PREFERRED = 0
UNCLEAN = 1

# Partitions looked at between two places where the operation may be interrupted.
_SLICE = 512


def election(topic_id: bytes, partition: PartitionImage, node_id: int) -> MetadataRecord | None:
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


def elect_leaders(
    request: Any, image: ClusterImage, *, node_id: int
) -> Operation[list[dict[str, Any]]]:
    """Elect leaders; results are elements of ElectLeadersResponse.replica_election_results.

    Raises:
        KafkaError: INVALID_REQUEST, for the whole request: there is no such kind of election.
    """
    if request.election_type not in {PREFERRED, UNCLEAN}:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no election type {request.election_type}."
        )
    wishes: Iterable[tuple[str, Iterable[int]]]
    is_everything = request.topic_partitions is None
    if is_everything:
        wishes = ((topic.name, topic.partitions) for topic in image.topics.values())
    else:
        wishes = ((topic.topic, topic.partitions) for topic in request.topic_partitions)
    elections = _Elections(image, request.election_type, node_id=node_id)
    results: list[dict[str, Any]] = []
    for name, indexes in wishes:
        partitions = yield from elections.hold(name, indexes, leave_out_unneeded=is_everything)
        results.append({"topic": name, "partition_result": partitions})
    return ControllerResult(results, elections.records.records)


class _Elections:
    """What the elections of one request share."""

    __slots__ = ("_image", "_looked_at", "_node_id", "_type", "records")

    def __init__(self, image: ClusterImage, election_type: int, *, node_id: int) -> None:
        self._image = image
        self._type = election_type
        self._node_id = node_id
        self._looked_at = 0
        self.records = RecordsOfRequest()

    def hold(
        self, name: str, indexes: Iterable[int], *, leave_out_unneeded: bool
    ) -> Generator[None, None, list[dict[str, Any]]]:
        """Return the results of one topic's partitions."""
        topic = self._image.topics.get(name)
        results: list[dict[str, Any]] = []
        for index in indexes:
            error = self._elect(name, topic, index)
            is_unneeded = error is not None and error.code is ErrorCode.ELECTION_NOT_NEEDED
            if not (is_unneeded and leave_out_unneeded):
                results.append(
                    {
                        "partition_id": index,
                        "error_code": int(error.code) if error else 0,
                        "error_message": error.message if error else None,
                    }
                )
            self._looked_at += 1
            if self._looked_at % _SLICE == 0:
                yield
        return results

    def _elect(self, name: str, topic: TopicImage | None, index: int) -> KafkaError | None:
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None:
            return KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{index}."
            )
        is_unclean = self._type == UNCLEAN
        if partition.leader == partition.replicas[0] or (
            is_unclean and partition.leader != NO_LEADER
        ):
            return KafkaError(
                ErrorCode.ELECTION_NOT_NEEDED, f"Partition {name}-{index} has the wanted leader."
            )
        record = election(topic.topic_id, partition, self._node_id)
        if record is not None:
            self.records.add(record)
            return None
        if is_unclean:
            code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        else:
            code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return KafkaError(code, f"No replica of partition {name}-{index} may take over.")
