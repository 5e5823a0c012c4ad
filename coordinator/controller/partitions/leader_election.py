"""Leader elections after changes of brokers and on request.

A broker that leaves, stops or registers again loses each leadership, and regains it in a higher
leader epoch unless another replica leads. From the epoch, consumers detect truncation after a power
loss (KIP-320).

Source: Kafka's ReplicationControlManager (generateLeaderAndIsrUpdates, electLeaders).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import ALTER_CLUSTER
from wirebroker.coordinator.controller.features.feature_control import has_eligible_leader_replicas
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_LEADER,
    ClusterImage,
    PartitionImage,
    ResourceType,
    TopicImage,
    directory_of,
)
from wirebroker.coordinator.controller.partitions.partition_change import (
    Election,
    PartitionDraft,
    TopicRules,
)
from wirebroker.coordinator.controller.requests.operations import as_field, declare, failure
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation

PREFERRED = 0
UNCLEAN = 1

# Partitions between two yields.
_SLICE = 512


class ElectionRules:
    """The rules of elections in one image."""

    __slots__ = ("_config", "_directories", "_has_elr", "_image", "_topics", "active")

    def __init__(self, image: ClusterImage, config: Config) -> None:
        self._image = image
        self._config = config
        self._has_elr = has_eligible_leader_replicas(image.features)
        # Cached, because each partition needs them.
        self._topics: dict[str, TopicRules] = {}
        self.active = {broker.node_id for broker in image.brokers.values() if broker.is_active}
        self._directories = {
            broker.node_id: broker.log_directories for broker in image.brokers.values()
        }

    def of(self, topic: str) -> TopicRules:
        """Return a topic's rules for automatic elections."""
        rules = self._topics.get(topic)
        if rules is None:
            election = Election.UNCLEAN if self._is_unclean(topic) else Election.ONLINE
            min_isr = self._min_insync(topic) if self._has_elr else 1
            rules = self._topics[topic] = TopicRules(
                election, self._has_elr, min_isr, self._directories
            )
        return rules

    def _min_insync(self, topic: str) -> int:
        value = self._setting(topic, "min.insync.replicas")
        return self._config.int("min.insync.replicas") if value is None else int(value)

    def _is_unclean(self, topic: str) -> bool:
        name = "unclean.leader.election.enable"
        value = self._setting(topic, name)
        return self._config.bool(name) if value is None else value.strip().lower() == "true"

    def _setting(self, topic: str, name: str) -> str | None:
        """Return the topic's, this node's or the cluster's value; None: the configuration's."""
        image = self._image
        own = image.config(ResourceType.BROKER, str(self._config.int("node.id")))
        for configs in (image.topic_config(topic), own, image.config(ResourceType.BROKER, "")):
            if name in configs:
                return configs[name]
        return None


def leave(
    image: ClusterImage,
    config: Config,
    broker: int,
    *,
    is_unclean: bool = False,
    directories: frozenset[bytes] | None = None,
) -> Generator[None, None, list[MetadataRecord]]:
    """Remove a broker from ISRs and leadership; others become leaders where possible.

    With `is_unclean`, it may have lost acknowledged records (KIP-966). `directories` limits the
    removal to replicas there.
    """
    rules = ElectionRules(image, config)
    rules.active.discard(broker)

    def draft(topic: TopicImage, partition: PartitionImage) -> PartitionDraft | None:
        # A leader is in the ISR; an ISR may keep its last member.
        if broker not in partition.isr and not (
            is_unclean and broker in partition.eligible_leader_replicas
        ):
            return None
        if directories is not None and directory_of(partition, broker) not in directories:
            return None
        return leaving(topic, partition, rules, broker, is_unclean=is_unclean)

    return changes_of(image, draft)


def leaving(
    topic: TopicImage,
    partition: PartitionImage,
    rules: ElectionRules,
    broker: int,
    *,
    is_unclean: bool = False,
) -> PartitionDraft:
    """Draft a partition without a broker; see `leave`."""
    rules.active.discard(broker)
    return PartitionDraft(
        topic.topic_id,
        partition,
        rules.of(topic.name),
        rules.active.__contains__,
        tuple([replica for replica in partition.isr if replica != broker]),
        broker if is_unclean else NO_LEADER,
    )


def join(
    image: ClusterImage, config: Config, broker: int
) -> Generator[None, None, list[MetadataRecord]]:
    """Elect a newly serving broker in partitions without a leader."""
    rules = ElectionRules(image, config)
    rules.active.add(broker)

    def draft(topic: TopicImage, partition: PartitionImage) -> PartitionDraft | None:
        if partition.leader != NO_LEADER:
            return None
        of_topic = rules.of(topic.name)
        return PartitionDraft(topic.topic_id, partition, of_topic, rules.active.__contains__)

    return changes_of(image, draft)


def changes_of(
    image: ClusterImage, draft_of: Callable[[TopicImage, PartitionImage], PartitionDraft | None]
) -> Generator[None, None, list[MetadataRecord]]:
    """Return the changes of all partitions; a draft of None changes nothing."""
    changes: list[MetadataRecord] = []
    looked_at = 0
    for topic in image.topics.values():
        for partition in topic.partitions.values():
            draft = draft_of(topic, partition)
            record = None if draft is None else draft.record()
            if record is not None:
                changes.append(record)
            looked_at += 1
            if looked_at % _SLICE == 0:
                yield
    return changes


def elect_leaders(
    request: Any, image: ClusterImage, config: Config
) -> Operation[list[dict[str, Any]]]:
    """Elect leaders; results are elements of ElectLeadersResponse.replica_election_results.

    Raises:
        KafkaError: INVALID_REQUEST: unknown election type.
    """
    if request.election_type not in {PREFERRED, UNCLEAN}:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}."
        )
    wishes: Iterable[tuple[str, Iterable[int]]]
    is_everything = request.topic_partitions is None
    if is_everything:
        wishes = ((topic.name, topic.partitions) for topic in image.topics.values())
    else:
        wishes = ((topic.topic, topic.partitions) for topic in request.topic_partitions)
    elections = _Elections(image, config, request.election_type)
    results: list[dict[str, Any]] = []
    for name, indexes in wishes:
        partitions = yield from elections.hold(name, indexes, leave_out_unneeded=is_everything)
        results.append({"topic": name, "partition_result": partitions})
        yield
    return ControllerResult(results, elections.records.records)


class _Elections:
    __slots__ = ("_checked_count", "_image", "_rules", "_type", "records")

    def __init__(self, image: ClusterImage, config: Config, election_type: int) -> None:
        self._image = image
        self._rules = ElectionRules(image, config)
        self._type = election_type
        self._checked_count = 0
        self.records = RecordsOfRequest()

    def hold(
        self, name: str, indexes: Iterable[int], *, leave_out_unneeded: bool
    ) -> Generator[None, None, list[dict[str, Any]]]:
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
            self._checked_count += 1
            if self._checked_count % _SLICE == 0:
                yield
        return results

    def _elect(self, name: str, topic: TopicImage | None, index: int) -> KafkaError | None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            return KafkaError(unknown, f"No such topic as {name}")
        partition = topic.partitions.get(index)
        if partition is None:
            return KafkaError(unknown, f"No such partition as {name}-{index}")
        is_unclean = self._type == UNCLEAN
        if partition.leader == partition.replicas[0] or (
            is_unclean and partition.leader != NO_LEADER
        ):
            return KafkaError(
                ErrorCode.ELECTION_NOT_NEEDED,
                f"Partition {name}-{index} does not need an election.",
            )
        election = Election.UNCLEAN if is_unclean else Election.PREFERRED
        rules = self._rules.of(name)._replace(election=election)
        may_lead = self._rules.active.__contains__
        record = PartitionDraft(topic.topic_id, partition, rules, may_lead).record()
        if record is not None:
            self.records.add(record)
            return None
        if is_unclean:
            code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        else:
            code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return KafkaError(code, f"No replica of partition {name}-{index} can become leader.")


# ElectLeaders v0 has only errors of partitions.
_FIRST_ELECTION_ERROR: Final = 1


def _refused(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for topic in request.body.topic_partitions or ():
        partitions = ({"partition_id": index, **failure(error)} for index in topic.partitions)
        result = {"topic": topic.topic, "partition_result": (yield from collected(partitions))}
        results.append(result)
        yield
    if request.version < _FIRST_ELECTION_ERROR:
        return {"replica_election_results": results}
    return {"error_code": int(error.code), "replica_election_results": results}


declare(
    ApiKey.ELECT_LEADERS,
    lambda case: as_field(
        "replica_election_results", elect_leaders(case.body, case.image, case.config)
    ),
    permissions=(ALTER_CLUSTER,),
    refuse=_refused,
    subjects=("topic_partitions",),
)
