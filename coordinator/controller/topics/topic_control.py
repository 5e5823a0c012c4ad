"""CreateTopics and CreatePartitions, with Kafka's order of checks (README.md).

Source: Kafka's ReplicationControlManager and ControllerApis.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.permissions import (
    ALTER_TOPIC,
    CREATE_IN_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
)
from wirebroker.coordinator.controller.configs.config_control import check_topic_overrides
from wirebroker.coordinator.controller.features.feature_control import clear_elr_records
from wirebroker.coordinator.controller.image.cluster_image import (
    ClusterImage,
    PartitionImage,
    ResourceType,
    TopicImage,
    config_record,
    partition_record,
)
from wirebroker.coordinator.controller.image.topic_names import (
    CLUSTER_METADATA_TOPIC,
    check_topic_name,
    collision_key,
    collisions,
    has_collision_characters,
)
from wirebroker.coordinator.controller.partitions.placement import (
    Placer,
    check_manual_assignment,
    new_partition,
)
from wirebroker.coordinator.controller.requests.operations import as_field, declare, refused_each
from wirebroker.coordinator.operation import (
    MAX_RECORDS,
    ControllerResult,
    Operation,
    RecordsOfRequest,
    too_large,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.requests.request import Case
    from wirebroker.coordinator.quotas.mutation_quota import MutationCharge

Result = dict[str, Any]

# Partitions between two yields.
_SLICE = 64


def create_topics(
    request: Any,
    image: ClusterImage,
    config: Config,
    *,
    topic_ids: Iterable[bytes],
    charge: MutationCharge,
) -> Operation[list[Result]]:
    """Create topics; each succeeds or fails separately.

    `topic_ids` are new ids, one for each topic of the request.

    Raises:
        KafkaError: POLICY_VIOLATION: too many records; nothing is created.
    """
    _check_total(request.topics, config.int("num.partitions"))
    names = Counter(topic.name for topic in request.topics)
    creation = _Creation(image, config, names, iter(topic_ids), charge)
    results: list[Result] = []
    for topic in request.topics:
        yield
        if names[topic.name] > 1 or topic.name == CLUSTER_METADATA_TOPIC:
            continue
        try:
            result = yield from creation.create(topic)
        except KafkaError as error:
            if error.code is ErrorCode.POLICY_VIOLATION:
                raise
            result = _failure(error, name=topic.name)
        results.append(result)
    for name, count in names.items():
        if count > 1:
            results.append(_failure(_invalid_request("Duplicate topic name."), name=name))
        elif name == CLUSTER_METADATA_TOPIC:
            refusal = _invalid_request(f"Clients cannot create the internal topic {name}.")
            results.append(_failure(refusal, name=name))
    records = [] if request.validate_only else creation.records.records
    return ControllerResult(results, records)


def _check_total(topics: Iterable[Any], default_partitions: int) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        else:
            total += topic.num_partitions if topic.num_partitions > 0 else default_partitions
        if total > MAX_RECORDS:
            raise too_large()


class _Creation:
    __slots__ = (
        "_charge",
        "_collisions",
        "_config",
        "_described",
        "_image",
        "_topic_ids",
        "records",
    )

    def __init__(
        self,
        image: ClusterImage,
        config: Config,
        names: Iterable[str],
        topic_ids: Iterator[bytes],
        charge: MutationCharge,
    ) -> None:
        self._image = image
        self._charge = charge
        self._topic_ids = topic_ids
        self._config = config
        # Skip existing topics if no new name could collide.
        could_collide = any(has_collision_characters(name) for name in names)
        self._collisions = collisions(image.topics) if could_collide else {}
        self._described: dict[tuple[tuple[str, str], ...], list[Result]] = {}
        self.records = RecordsOfRequest()

    def create(self, topic: Any) -> Generator[None, None, Result]:
        overrides = self._check(topic)
        records = RecordsOfRequest()
        topic_id = next(self._topic_ids)
        records.add(metadata_record(RecordType.TOPIC, name=topic.name, topic_id=topic_id))
        configs = [
            config_record(ResourceType.TOPIC, topic.name, name, value)
            for name, value in overrides.items()
        ]
        records.extend([*configs, *clear_elr_records(self._image, configs)])
        partitions = 0
        replication_factor = 0
        for partition in self._partitions(topic):
            records.add(partition_record(topic_id, partition))
            replication_factor = replication_factor or len(partition.replicas)
            partitions += 1
            if partitions % _SLICE == 0:
                yield
        self._charge.take(partitions)
        self.records.extend(records.records)
        return {
            "name": topic.name,
            "topic_id": topic_id,
            "error_message": None,
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": self._describe(overrides),
        }

    def _check(self, topic: Any) -> dict[str, str]:
        name = topic.name
        if name in self._image.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        check_topic_name(name)
        other = self._collisions.get(collision_key(name))
        if other is not None and has_collision_characters(name):
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' would collide with the topic '{other}': metric names do not"
                " distinguish '.' and '_'.",
            )
        nulls = [entry.name for entry in topic.configs if entry.value is None]
        if nulls:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Topic configs without a value: {','.join(nulls)}",
            )
        overrides = {entry.name: entry.value for entry in topic.configs}
        if overrides:
            check_topic_overrides(self._config, overrides)
        return overrides

    def _partitions(self, topic: Any) -> Iterable[PartitionImage]:
        if topic.assignments:
            return self._assigned(topic)
        replication_factor = topic.replication_factor
        if replication_factor < -1 or replication_factor == 0:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        count = topic.num_partitions
        if count < -1 or count == 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        if count == -1:
            count = self._config.int("num.partitions")
        if replication_factor == -1:
            replication_factor = self._config.int("default.replication.factor")
        placer = Placer(self._image, replication_factor=replication_factor)
        return map(placer.place, range(count))

    def _assigned(self, topic: Any) -> list[PartitionImage]:
        if topic.replication_factor != -1:
            raise _invalid_request(
                "A manual partition assignment was specified, but replication factor was not set"
                " to -1."
            )
        if topic.num_partitions != -1:
            raise _invalid_request(
                "A manual partition assignment was specified, but numPartitions was not set to -1."
            )
        partitions: dict[int, PartitionImage] = {}
        replication_factor = None
        for assignment in topic.assignments:
            index = assignment.partition_index
            if index in partitions:
                raise _bad_assignment(
                    f"Found multiple manual partition assignments for partition {index}"
                )
            check_manual_assignment(
                self._image,
                assignment.broker_ids,
                partition=index,
                replication_factor=replication_factor,
            )
            replication_factor = len(assignment.broker_ids)
            partitions[index] = new_partition(self._image, index, assignment.broker_ids)
        if partitions.keys() != set(range(len(partitions))):
            raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
        return [partitions[index] for index in range(len(partitions))]

    def _describe(self, overrides: dict[str, str]) -> list[Result]:
        """Return all configs of the new topic, with overrides as written, cached per overrides."""
        key = tuple(sorted(overrides.items()))
        described = self._described.get(key)
        if described is None:
            described = [
                {
                    "name": row.name,
                    "value": None if row.is_sensitive else overrides.get(row.name, row.value),
                    "read_only": row.read_only,
                    "config_source": int(row.config_source),
                    "is_sensitive": row.is_sensitive,
                }
                for row in self._config.describe_topic(overrides)
            ]
            self._described[key] = described
        return described


def create_partitions(
    request: Any, image: ClusterImage, charge: MutationCharge
) -> Operation[list[Result]]:
    """Add partitions to topics; one that would exceed MAX_RECORDS is refused alone."""
    names = Counter(topic.name for topic in request.topics)
    results = yield from collected(
        _failure(_invalid_request("Duplicate topic name."), name=name)
        for name, count in names.items()
        if count > 1
    )
    records = RecordsOfRequest()
    for topic in request.topics:
        yield
        if names[topic.name] > 1:
            continue
        try:
            before = _existing(topic.name, image)
            added = _added_partitions(topic, before, image, room=records.room)
            charge.take(topic.count - len(before.partitions))
            for count, partition in enumerate(added):
                records.add(partition_record(before.topic_id, partition))
                if count % _SLICE == 0:
                    yield
            results.append({"name": topic.name})
        except KafkaError as error:
            results.append(_failure(error, name=topic.name))
    return ControllerResult(results, [] if request.validate_only else records.records)


def _existing(name: str, image: ClusterImage) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def _added_partitions(
    topic: Any, before: TopicImage, image: ClusterImage, *, room: int
) -> Iterable[PartitionImage]:
    present = len(before.partitions)
    if topic.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if topic.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {topic.count} would not"
            " be an increase.",
        )
    additional = topic.count - present
    if additional > room:
        raise too_large()
    replication_factor = len(before.partitions[0].replicas)
    if topic.assignments is None:
        placer = Placer(image, replication_factor=replication_factor)
        return map(placer.place, range(present, topic.count))
    if len(topic.assignments) != additional:
        raise _bad_assignment(
            f"Attempted to add {additional} additional partition(s), but only"
            f" {len(topic.assignments)} assignment(s) were specified."
        )
    partitions: list[PartitionImage] = []
    for index, assignment in enumerate(topic.assignments, present):
        check_manual_assignment(
            image,
            assignment.broker_ids,
            partition=index,
            replication_factor=replication_factor,
        )
        partitions.append(new_partition(image, index, assignment.broker_ids))
    return partitions


def _failure(error: KafkaError, *, name: str) -> Result:
    return {"name": name, "error_code": int(error.code), "error_message": error.message}


def _invalid_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _create(case: Case) -> Operation[dict[str, Any]]:
    ids = (case.rules.new_uuid() for _ in case.body.topics)
    created = create_topics(case.body, case.image, case.config, topic_ids=ids, charge=case.charge)
    return as_field("topics", created)


def _names(body: Any) -> Iterator[dict[str, Any]]:
    return ({"name": topic.name} for topic in body.topics)


declare(
    ApiKey.CREATE_TOPICS,
    _create,
    permissions=(CREATE_IN_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS),
    refuse=refused_each("topics", _names),
    subjects=("topics",),
)
declare(
    ApiKey.CREATE_PARTITIONS,
    lambda case: as_field("results", create_partitions(case.body, case.image, case.charge)),
    permissions=(ALTER_TOPIC,),
    refuse=refused_each("results", _names),
    subjects=("topics",),
)
