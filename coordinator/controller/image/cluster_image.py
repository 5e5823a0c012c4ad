"""The whole cluster as an immutable value: the state of the metadata log at an offset.

Treat its mappings as read-only. SCRAM users, delegation tokens and unsupported kinds are kept as
records in `others`, so that snapshots lose nothing.

Source: Kafka's org.apache.kafka.image; records in codecs/metadata_records.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.acls import AclEntry
from wirebroker.codecs.delegation_token import DelegationToken, token_of
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.codecs.scram import ScramKeys
from wirebroker.coordinator.quotas.quota_entity import ClientQuotas, QuotaEntity

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from wirebroker.codecs.scram_forms import ScramForms

METADATA_VERSION = "metadata.version"
NO_LEADER = -1

# Reserved values of directories (Kafka's DirectoryId).
UNASSIGNED_DIRECTORY = bytes(16)
LOST_DIRECTORY = bytes(15) + b"\x01"
MIGRATING_DIRECTORY = bytes(15) + b"\x02"


class ResourceType:
    """The kind of resource of a config (Kafka's ConfigResource.Type)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    ALL = frozenset((TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP))


class PartitionImage(NamedTuple):
    """A partition: replicas, leader and epochs."""

    # Hides tuple.index().
    index: int  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int  # NO_LEADER if there is none
    leader_epoch: int  # +1 whenever a change names a leader, even the same
    partition_epoch: int  # +1 with every change
    directories: tuple[bytes, ...]  # one per replica
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0  # 0 recovered, 1 recovering after an unclean election
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def check(self) -> None:
        """Assert the invariants."""
        replicas, eligible = set(self.replicas), set(self.eligible_leader_replicas)
        assert self.replicas
        assert len(self.directories) == len(self.replicas)
        for members in (self.isr, self.eligible_leader_replicas, self.adding_replicas):
            assert len(set(members)) == len(members)
            assert replicas.issuperset(members)
        assert replicas.issuperset(self.removing_replicas)
        assert not eligible & set(self.isr)
        assert self.leader == NO_LEADER or self.leader in self.isr


def directory_of(partition: PartitionImage, replica: int) -> bytes:
    """Return the directory of a replica, possibly a reserved value."""
    return partition.directories[partition.replicas.index(replica)]


class TopicImage(NamedTuple):
    """A topic; partitions are numbered from 0 without gaps."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]


class Endpoint(NamedTuple):
    """The address of a listener."""

    name: str
    host: str
    port: int
    security_protocol: int  # 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL


class BrokerImage(NamedTuple):
    """A registered broker."""

    node_id: int
    epoch: int  # offset of its registration record
    incarnation_id: bytes
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_directories: tuple[bytes, ...]
    cordoned_log_directories: tuple[bytes, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Whether it may lead and be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_replicas(self) -> bool:
        """Whether new replicas may be placed on it, now or after its restart (KIP-1066).

        The metadata keeps a controlled shutdown until the next registration, but in Kafka's
        BrokerHeartbeatManager it ends with the fence.
        """
        is_stopping = self.in_controlled_shutdown and not self.fenced
        cordoned = self.cordoned_log_directories or ()
        return not is_stopping and (
            not self.log_directories or not set(self.log_directories) <= set(cordoned)
        )


def endpoints_of(listeners: Iterable[Any]) -> dict[str, Endpoint]:
    """Return the listeners of a registration, by name."""
    return {
        listener.name: Endpoint(
            listener.name, listener.host, listener.port, listener.security_protocol
        )
        for listener in listeners
    }


def ranges_of(features: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """Return the supported levels of a registration, by feature."""
    return {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in features
    }


ConfigKey = tuple[int, str]  # (ResourceType, resource name; "" is the default of its kind)
NO_CONFIGS: Mapping[str, str] = {}


@dataclass(slots=True, frozen=True)
class ClusterImage:
    """The state of the cluster after all records before `offset`."""

    # The next offset to apply, and the leader epoch of the last record.
    offset: int = 0
    epoch: int = 0
    topics: Mapping[str, TopicImage] = field(default_factory=dict[str, TopicImage])
    topics_by_id: Mapping[bytes, TopicImage] = field(default_factory=dict[bytes, TopicImage])
    # No empty inner mappings.
    configs: Mapping[ConfigKey, Mapping[str, str]] = field(
        default_factory=dict[ConfigKey, "Mapping[str, str]"]
    )
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict[int, BrokerImage])
    controllers: Mapping[int, MetadataRecord] = field(default_factory=dict[int, MetadataRecord])
    features: Mapping[str, int] = field(default_factory=dict[str, int])  # no zero levels
    # No empty inner mappings.
    client_quotas: ClientQuotas = field(default_factory=dict[QuotaEntity, "Mapping[str, float]"])
    # The record with the next free producer id; None: 0.
    producer_ids: MetadataRecord | None = None
    # In both directions, so that no rule is added twice.
    acls: Mapping[bytes, AclEntry] = field(default_factory=dict[bytes, AclEntry])
    acl_ids: Mapping[AclEntry, bytes] = field(default_factory=dict[AclEntry, bytes])
    others: Mapping[Hashable, MetadataRecord] = field(
        default_factory=dict["Hashable", MetadataRecord]
    )
    # Forms of the credentials in `others`, by mechanism. No empty inner mappings.
    scram_forms: Mapping[int, ScramForms] = field(default_factory=dict[int, "ScramForms"])
    # Records of an unfinished transaction, which have no effect yet.
    open_transaction: tuple[MetadataRecord, ...] | None = None

    @property
    def next_producer_id(self) -> int:
        """First id of the next block."""
        if self.producer_ids is None:
            return 0
        return int(self.producer_ids.body.next_producer_id)

    def scram_user(self, name: str, mechanism: int) -> ScramKeys | None:
        """Return a user's keys for a mechanism."""
        record = self.others.get(("scram", name, mechanism))
        return None if record is None else scram_keys(record.body)

    def scram_users(self) -> dict[str, dict[int, ScramKeys]]:
        """Return all SCRAM users, by name and mechanism."""
        users: dict[str, dict[int, ScramKeys]] = {}
        for record in self.others.values():
            if record.type is RecordType.USER_SCRAM_CREDENTIAL:
                body = record.body
                users.setdefault(body.name, {})[body.mechanism] = scram_keys(body)
        return users

    def delegation_token(self, token_id: str) -> DelegationToken | None:
        """Return a token, possibly expired."""
        record = self.others.get(("token", token_id))
        return None if record is None else token_of(record.body)

    def delegation_tokens(self) -> Iterator[DelegationToken]:
        """Iterate over all tokens, including expired ones."""
        for record in self.others.values():
            if record.type is RecordType.DELEGATION_TOKEN:
                yield token_of(record.body)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the configs of a resource."""
        return self.configs.get((resource_type, name), NO_CONFIGS)

    def topic_config(self, name: str) -> Mapping[str, str]:
        """Return the configs of a topic."""
        return self.configs.get((ResourceType.TOPIC, name), NO_CONFIGS)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """Return a partition, if present."""
        image = self.topics.get(topic)
        return None if image is None else image.partitions.get(index)

    def check(self) -> None:
        """Assert the invariants."""
        assert len(self.topics) == len(self.topics_by_id)
        for topic in self.topics.values():
            assert self.topics_by_id[topic.topic_id] is topic
            for index, partition in topic.partitions.items():
                assert partition.index == index
                partition.check()
        assert all(self.configs.values())
        assert all(self.client_quotas.values())
        assert all(self.scram_forms.values())


def scram_keys(body: Any) -> ScramKeys:
    """Return the keys in a record."""
    return ScramKeys(body.salt, body.stored_key, body.server_key, body.iterations)


def partition_record(topic_id: bytes, partition: PartitionImage) -> MetadataRecord:
    """Return the record that creates this partition."""
    return metadata_record(
        RecordType.PARTITION,
        partition_id=partition.index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.eligible_leader_replicas) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def broker_record(broker: BrokerImage) -> MetadataRecord:
    """Return a registration record of the broker's current state."""
    cordoned = broker.cordoned_log_directories
    return metadata_record(
        RecordType.REGISTER_BROKER,
        broker_id=broker.node_id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[endpoint._asdict() for endpoint in broker.endpoints.values()],
        features=feature_ranges(broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_directories),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def feature_ranges(features: Mapping[str, tuple[int, int]]) -> list[dict[str, str | int]]:
    """Return supported features as in registration records."""
    return [
        {"name": name, "min_supported_version": low, "max_supported_version": high}
        for name, (low, high) in features.items()
    ]


def to_records(image: ClusterImage) -> Iterator[MetadataRecord]:
    """Yield the records of a snapshot, in Kafka's order."""
    assert image.open_transaction is None, "a snapshot cannot hold half a transaction"
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield metadata_record(
            RecordType.FEATURE_LEVEL, name=name, feature_level=image.features[name]
        )
    for broker in image.brokers.values():
        yield broker_record(broker)
    yield from image.controllers.values()
    for topic in image.topics.values():
        yield metadata_record(RecordType.TOPIC, name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions.values():
            yield partition_record(topic.topic_id, partition)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield config_record(resource_type, resource_name, name, value)
    for entity, quotas in image.client_quotas.items():
        for key, limit in quotas.items():
            yield quota_record(entity, key, limit)
    if image.producer_ids is not None:
        yield image.producer_ids
    for acl_id, entry in image.acls.items():
        yield acl_record(acl_id, entry)
    yield from image.others.values()


def acl_record(acl_id: bytes, entry: AclEntry) -> MetadataRecord:
    """Return the record that adds a rule."""
    return metadata_record(RecordType.ACCESS_CONTROL_ENTRY, id=acl_id, **entry._asdict())


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> MetadataRecord:
    """Return the record that sets a quota, or removes it (None)."""
    return metadata_record(
        RecordType.CLIENT_QUOTA,
        entity=[{"entity_type": kind, "entity_name": name} for kind, name in entity],
        key=key,
        value=0.0 if value is None else value,
        remove=value is None,
    )


def config_record(
    resource_type: int, resource_name: str, name: str, value: str | None
) -> MetadataRecord:
    """Return the record that sets a config, or removes it (None)."""
    return metadata_record(
        RecordType.CONFIG,
        resource_type=resource_type,
        resource_name=resource_name,
        name=name,
        value=value,
    )
