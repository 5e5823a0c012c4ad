"""From one cluster image to the next: records in, a new image and what changed out.

Nothing of the old image is touched. A mapping is copied when the first record of a kind arrives,
so that building costs what changed plus one shallow copy (0.1 ms for 10,000 topics). `apply` takes
microseconds; whoever applies thousands of records cuts them into slices.

Records between BeginTransaction and EndTransaction count at the end, or never after
AbortTransaction (KIP-868); the image carries an open transaction, so batches may be cut anywhere.

Source: Kafka's MetadataDelta and PartitionRegistration.merge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType
from wirebroker.coordinator.cluster_image import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    ClusterImage,
    ConfigKey,
    Endpoint,
    PartitionImage,
    ResourceType,
    TopicImage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

NO_LEADER_CHANGE = -2


@dataclass(slots=True)
class ImageChange:
    """What differs between two images, named so that replicas and caches can follow."""

    created: set[str] = field(default_factory=set[str])
    # As they were before; a topic that was deleted and created again is in both.
    deleted: list[TopicImage] = field(default_factory=list[TopicImage])
    # Topics that stayed and have a partition that is new or changed.
    changed: set[str] = field(default_factory=set[str])
    configs_changed: set[ConfigKey] = field(default_factory=set[ConfigKey])


class ImageBuilder:
    """Applies records on top of an image."""

    __slots__ = (
        "_base",
        "_brokers",
        "_change",
        "_configs",
        "_controllers",
        "_features",
        "_others",
        "_own_partitions",
        "_producer_ids",
        "_topics",
        "_topics_by_id",
        "_transaction",
    )

    def __init__(self, image: ClusterImage) -> None:
        self._base = image
        self._change = ImageChange()
        self._topics: dict[str, TopicImage] | None = None
        self._topics_by_id: dict[bytes, TopicImage] = {}
        # Partition maps made by this builder: these may still be written to.
        self._own_partitions: dict[bytes, dict[int, PartitionImage]] = {}
        self._configs: dict[ConfigKey, dict[str, str]] | None = None
        self._brokers: dict[int, BrokerImage] | None = None
        self._controllers: dict[int, MetadataRecord] | None = None
        self._features: dict[str, int] | None = None
        self._others: dict[Hashable, MetadataRecord] | None = None
        self._producer_ids = image.producer_ids
        transaction = image.open_transaction
        self._transaction: list[MetadataRecord] | None = (
            None if transaction is None else list(transaction)
        )

    def apply(self, record: MetadataRecord) -> None:
        """Apply one record.

        Raises:
            KafkaError: UNSUPPORTED_VERSION for a kind that is unknown here: going on without it
                would show a cluster that does not exist.
        """
        kind = record.type
        if self._transaction is not None:
            if kind is RecordType.END_TRANSACTION:
                pending, self._transaction = self._transaction, None
                for each in pending:
                    self.apply(each)
            elif kind is RecordType.ABORT_TRANSACTION:
                self._transaction = None
            else:
                self._transaction.append(record)
            return
        action = self._ACTIONS.get(kind)
        if action is None:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"metadata records of kind {kind} cannot be replayed"
            )
        action(self, record)

    def apply_all(self, records: Iterable[MetadataRecord]) -> ImageBuilder:
        """Apply several records."""
        for record in records:
            self.apply(record)
        return self

    def build(self, *, offset: int, epoch: int) -> tuple[ClusterImage, ImageChange]:
        """Return the image after the applied records; the builder must not be used after it.

        Args:
            offset: Offset after the last record.
            epoch: Leader epoch of the last record.
        """
        base = self._base
        image = ClusterImage(
            offset=offset,
            epoch=epoch,
            topics=base.topics if self._topics is None else self._topics,
            topics_by_id=base.topics_by_id if self._topics is None else self._topics_by_id,
            configs=base.configs if self._configs is None else self._configs,
            brokers=base.brokers if self._brokers is None else self._brokers,
            controllers=base.controllers if self._controllers is None else self._controllers,
            features=base.features if self._features is None else self._features,
            producer_ids=self._producer_ids,
            others=base.others if self._others is None else self._others,
            open_transaction=None if self._transaction is None else tuple(self._transaction),
        )
        change = self._change
        change.changed -= change.created
        return image, change

    # Topics and partitions

    def _own_topics(self) -> dict[str, TopicImage]:
        if self._topics is None:
            self._topics = dict(self._base.topics)
            self._topics_by_id = dict(self._base.topics_by_id)
        return self._topics

    def _topic(self, record: MetadataRecord) -> TopicImage:
        self._own_topics()
        topic = self._topics_by_id.get(record.body.topic_id)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID, f"a {record.type.name} record names an unknown topic"
            )
        return topic

    def _partitions(self, topic: TopicImage) -> dict[int, PartitionImage]:
        partitions = self._own_partitions.get(topic.topic_id)
        if partitions is None:
            partitions = dict(topic.partitions)
            self._own_partitions[topic.topic_id] = partitions
            self._put_topic(TopicImage(topic.name, topic.topic_id, partitions))
        return partitions

    def _put_topic(self, topic: TopicImage) -> None:
        self._own_topics()[topic.name] = topic
        self._topics_by_id[topic.topic_id] = topic

    def _apply_topic(self, record: MetadataRecord) -> None:
        partitions: dict[int, PartitionImage] = {}
        topic = TopicImage(record.body.name, record.body.topic_id, partitions)
        self._own_partitions[topic.topic_id] = partitions
        self._put_topic(topic)
        self._change.created.add(topic.name)

    def _apply_remove_topic(self, record: MetadataRecord) -> None:
        topic = self._topic(record)
        self._own_partitions.pop(topic.topic_id, None)
        del self._own_topics()[topic.name]
        del self._topics_by_id[topic.topic_id]
        key = (ResourceType.TOPIC, topic.name)
        if key in (self._base.configs if self._configs is None else self._configs):
            del self._own_configs()[key]
            self._change.configs_changed.add(key)
        self._change.created.discard(topic.name)
        self._change.changed.discard(topic.name)
        before = self._base.topics_by_id.get(topic.topic_id)
        if before is not None:
            self._change.deleted.append(before)

    def _apply_partition(self, record: MetadataRecord) -> None:
        body = record.body
        topic = self._topic(record)
        replicas = tuple(body.replicas)
        self._partitions(topic)[body.partition_id] = PartitionImage(
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
        self._change.changed.add(topic.name)

    def _apply_partition_change(self, record: MetadataRecord) -> None:
        topic = self._topic(record)
        partitions = self._partitions(topic)
        before = partitions.get(record.body.partition_id)
        if before is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"a change names partition {record.body.partition_id} of {topic.name},"
                " which does not exist",
            )
        partitions[before.index] = merge_partition(before, record.body)
        self._change.changed.add(topic.name)

    def _apply_clear_elr(self, record: MetadataRecord) -> None:
        name = record.body.topic_name
        topics = self._own_topics()
        for topic in [topics[name]] if name else list(topics.values()):
            for partition in list(topic.partitions.values()):
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    self._partitions(topic)[partition.index] = partition._replace(
                        eligible_leader_replicas=(), last_known_elr=()
                    )
                    self._change.changed.add(topic.name)

    # Configs, features, producer ids, kinds that are only kept

    def _own_configs(self) -> dict[ConfigKey, dict[str, str]]:
        if self._configs is None:
            self._configs = {key: dict(values) for key, values in self._base.configs.items()}
        return self._configs

    def _apply_config(self, record: MetadataRecord) -> None:
        body = record.body
        key = (body.resource_type, body.resource_name)
        configs = self._own_configs()
        values = configs.setdefault(key, {})
        if body.value is None:
            values.pop(body.name, None)
        else:
            values[body.name] = body.value
        if not values:
            del configs[key]
        self._change.configs_changed.add(key)

    def _apply_feature_level(self, record: MetadataRecord) -> None:
        if self._features is None:
            self._features = dict(self._base.features)
        if record.body.feature_level == 0:
            self._features.pop(record.body.name, None)
        else:
            self._features[record.body.name] = record.body.feature_level

    def _apply_producer_ids(self, record: MetadataRecord) -> None:
        self._producer_ids = record

    def _begin_transaction(self, record: MetadataRecord) -> None:
        del record
        self._transaction = []

    def _keep(self, record: MetadataRecord) -> None:
        if self._others is None:
            self._others = dict(self._base.others)
        key, is_removal = _kept_key(record)
        self._others.pop(key, None)
        if not is_removal:
            self._others[key] = record

    # Brokers and controllers

    def _own_brokers(self) -> dict[int, BrokerImage]:
        if self._brokers is None:
            self._brokers = dict(self._base.brokers)
        return self._brokers

    def _apply_register_broker(self, record: MetadataRecord) -> None:
        body = record.body
        cordoned = body.cordoned_log_dirs
        self._own_brokers()[body.broker_id] = BrokerImage(
            node_id=body.broker_id,
            epoch=body.broker_epoch,
            incarnation_id=body.incarnation_id,
            endpoints={
                each.name: Endpoint(each.name, each.host, each.port, each.security_protocol)
                for each in body.end_points
            },
            features={
                each.name: (each.min_supported_version, each.max_supported_version)
                for each in body.features
            },
            rack=body.rack,
            fenced=body.fenced,
            in_controlled_shutdown=body.in_controlled_shutdown,
            log_directories=tuple(body.log_dirs),
            cordoned_log_directories=None if cordoned is None else tuple(cordoned),
            is_migrating_zk_broker=body.is_migrating_zk_broker,
        )

    def _apply_unregister_broker(self, record: MetadataRecord) -> None:
        self._own_brokers().pop(record.body.broker_id, None)

    def _apply_fence(self, record: MetadataRecord) -> None:
        brokers = self._own_brokers()
        broker = brokers.get(record.body.id)
        if broker is not None:
            fenced = record.type is RecordType.FENCE_BROKER
            brokers[broker.node_id] = broker._replace(fenced=fenced)

    def _apply_broker_change(self, record: MetadataRecord) -> None:
        body = record.body
        brokers = self._own_brokers()
        broker = brokers.get(body.broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"a change names broker {body.broker_id}, which is not registered",
            )
        if body.fenced:
            broker = broker._replace(fenced=body.fenced > 0)
        if body.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=body.in_controlled_shutdown > 0)
        if body.log_dirs:
            broker = broker._replace(log_directories=tuple(body.log_dirs))
        if body.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned_log_directories=tuple(body.cordoned_log_dirs))
        brokers[broker.node_id] = broker

    def _apply_register_controller(self, record: MetadataRecord) -> None:
        if self._controllers is None:
            self._controllers = dict(self._base.controllers)
        self._controllers[record.body.controller_id] = record

    def _apply_nothing(self, record: MetadataRecord) -> None:
        """Skip NoOp records, and ends of transactions that were never begun here."""

    _ACTIONS: ClassVar[dict[RecordType, Callable[[Any, MetadataRecord], None]]] = {
        RecordType.REGISTER_BROKER: _apply_register_broker,
        RecordType.UNREGISTER_BROKER: _apply_unregister_broker,
        RecordType.TOPIC: _apply_topic,
        RecordType.PARTITION: _apply_partition,
        RecordType.CONFIG: _apply_config,
        RecordType.PARTITION_CHANGE: _apply_partition_change,
        RecordType.FENCE_BROKER: _apply_fence,
        RecordType.UNFENCE_BROKER: _apply_fence,
        RecordType.REMOVE_TOPIC: _apply_remove_topic,
        RecordType.DELEGATION_TOKEN: _keep,
        RecordType.USER_SCRAM_CREDENTIAL: _keep,
        RecordType.FEATURE_LEVEL: _apply_feature_level,
        RecordType.CLIENT_QUOTA: _keep,
        RecordType.PRODUCER_IDS: _apply_producer_ids,
        RecordType.BROKER_REGISTRATION_CHANGE: _apply_broker_change,
        RecordType.ACCESS_CONTROL_ENTRY: _keep,
        RecordType.REMOVE_ACCESS_CONTROL_ENTRY: _keep,
        RecordType.NO_OP: _apply_nothing,
        RecordType.ZK_MIGRATION_STATE: _keep,
        RecordType.REMOVE_USER_SCRAM_CREDENTIAL: _keep,
        RecordType.BEGIN_TRANSACTION: _begin_transaction,
        RecordType.END_TRANSACTION: _apply_nothing,
        RecordType.ABORT_TRANSACTION: _apply_nothing,
        RecordType.REMOVE_DELEGATION_TOKEN: _keep,
        RecordType.REGISTER_CONTROLLER: _apply_register_controller,
        RecordType.CLEAR_ELR: _apply_clear_elr,
    }


def merge_partition(before: PartitionImage, body: Any) -> PartitionImage:
    """Return a partition after a PartitionChange record.

    Whoever is named leader, be it the same, gets a new leader epoch; without a leader in the
    record the epoch stays (metadata.version >= 3.6), and the partition epoch always grows.
    """
    replicas, directories = before.replicas, before.directories
    if body.replicas is not None:
        placed = dict(zip(replicas, directories, strict=True))
        replicas = tuple(body.replicas)
        directories = tuple(placed.get(each, UNASSIGNED_DIRECTORY) for each in replicas)
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


def _kept_key(record: MetadataRecord) -> tuple[Hashable, bool]:
    """Return what a kept record is about, and whether it removes that."""
    kinds, body = RecordType, record.body
    key: Hashable
    match record.type:
        case kinds.ACCESS_CONTROL_ENTRY | kinds.REMOVE_ACCESS_CONTROL_ENTRY:
            key = ("acl", body.id)
        case kinds.USER_SCRAM_CREDENTIAL | kinds.REMOVE_USER_SCRAM_CREDENTIAL:
            key = ("scram", body.name, body.mechanism)
        case kinds.DELEGATION_TOKEN | kinds.REMOVE_DELEGATION_TOKEN:
            key = ("token", body.token_id)
        case kinds.CLIENT_QUOTA:
            entity = frozenset((each.entity_type, each.entity_name) for each in body.entity)
            return ("quota", entity, body.key), bool(body.remove)
        case _:
            assert record.type is kinds.ZK_MIGRATION_STATE
            key = ("zookeeper",)
    return key, record.type.name.startswith("REMOVE_")
