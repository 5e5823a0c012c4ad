"""Log directories of replicas, and what their failure means.

A broker of several directories reports those of its replicas (AssignReplicasToDirs), and failed
ones (BrokerHeartbeat), whose replicas leave the ISR and lead no longer. A broker with one directory
reports neither: placement already determines the directory.

Source: Kafka's ReplicationControlManager.handleAssignReplicasToDirs, handleDirectoriesOffline;
KIP-858.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.coordinator.controller.brokers.broker_registration import (
    broker_change,
    check_broker_epoch,
)
from wirebroker.coordinator.controller.features.feature_control import has_directory_assignments
from wirebroker.coordinator.controller.image.cluster_image import directory_of
from wirebroker.coordinator.controller.partitions.leader_election import (
    ElectionRules,
    leave,
    leaving,
)
from wirebroker.coordinator.controller.requests.operations import declare_of_brokers
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import (
        BrokerImage,
        ClusterImage,
        PartitionImage,
        TopicImage,
    )
    from wirebroker.coordinator.operation import Operation

# Replicas of one topic between two yields.
_STEP: Final = 64


def assign_replicas(request: Any, image: ClusterImage, config: Config) -> Operation[dict[str, Any]]:
    """Record directories of replicas.

    A replica in an offline directory leaves the ISR.

    Raises:
        KafkaError: For the whole request: UNSUPPORTED_VERSION (metadata.version has no
            directories), STALE_BROKER_EPOCH.
    """
    if not has_directory_assignments(image.features):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The cluster's metadata.version does not support log directories.",
        )
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    assigning = _Assigning(image, config, broker)
    directories: list[dict[str, Any]] = []
    for directory in request.directories:
        topics: list[dict[str, Any]] = []
        for topic in directory.topics:
            partitions: list[dict[str, int]] = []
            for count, partition in enumerate(topic.partitions, 1):
                index = partition.partition_index
                error = assigning.assign(directory.id, topic.topic_id, index)
                partitions.append({"partition_index": index, "error_code": int(error)})
                if count % _STEP == 0:
                    yield
            topics.append({"topic_id": topic.topic_id, "partitions": partitions})
            yield
        directories.append({"id": directory.id, "topics": topics})
    yield
    return ControllerResult({"directories": directories}, assigning.records.records)


class _Assigning:
    __slots__ = ("_broker", "_image", "_rules", "records")

    def __init__(self, image: ClusterImage, config: Config, broker: BrokerImage) -> None:
        self._image = image
        self._broker = broker
        self._rules = ElectionRules(image, config)
        self.records = RecordsOfRequest()

    def assign(self, directory: bytes, topic_id: bytes, index: int) -> ErrorCode:
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        partition = topic.partitions.get(index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        node_id = self._broker.node_id
        if node_id not in partition.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if directory_of(partition, node_id) != directory:
            self.records.add(_placed(topic, partition, node_id, directory))
        if directory not in self._broker.log_directories and node_id in partition.isr:
            out = leaving(topic, partition, self._rules, node_id).record()
            if out is not None:
                self.records.add(out)
        return ErrorCode.NONE


def _placed(
    topic: TopicImage, partition: PartitionImage, node_id: int, directory: bytes
) -> MetadataRecord:
    directories = [
        directory if replica == node_id else before
        for replica, before in zip(partition.replicas, partition.directories, strict=True)
    ]
    return metadata_record(
        RecordType.PARTITION_CHANGE,
        partition_id=partition.index,
        topic_id=topic.topic_id,
        directories=directories,
    )


def newly_failed(broker: BrokerImage, offline: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the offline directories that were online so far."""
    return tuple(directory for directory in broker.log_directories if directory in set(offline))


def directories_failed(
    image: ClusterImage, config: Config, broker: BrokerImage, failed: Sequence[bytes]
) -> Generator[None, None, list[MetadataRecord]]:
    """Remove the replicas in failed directories from ISRs and from leadership."""
    records = yield from leave(image, config, broker.node_id, directories=frozenset(failed))
    online = [directory for directory in broker.log_directories if directory not in failed]
    # A broker without directories stops; the record cannot express an empty list.
    return [*records, broker_change(broker, log_dirs=online)] if online else records


declare_of_brokers(
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    lambda case: assign_replicas(case.body, case.image, case.config),
)
