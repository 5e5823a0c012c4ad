"""Application of metadata records to a cluster image.

Records after BeginTransaction take effect at EndTransaction, or never after AbortTransaction
(KIP-868). The image carries those of an open transaction, so a builder may start or finish within
one.

Source: Kafka's MetadataDelta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.acls import AclEntry, entry_of
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType
from wirebroker.codecs.scram_forms import form_of
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_CONFIGS,
    BrokerImage,
    ClusterImage,
    ConfigKey,
    ResourceType,
    scram_keys,
)
from wirebroker.coordinator.controller.image.image_change import (
    AclChange,
    BrokerChange,
    ConfigChange,
    ImageChange,
)
from wirebroker.coordinator.controller.image.image_records import (
    broker_of,
    merge_broker,
)
from wirebroker.coordinator.controller.image.persistent_map import MapEdit, finished
from wirebroker.coordinator.controller.image.topics_edit import TopicsEdit
from wirebroker.coordinator.quotas.quota_entity import QuotaEntity, entity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.scram_forms import ScramForm


def _keep_as(kind: str, *fields: str) -> Callable[[ImageBuilder, MetadataRecord], None]:
    """Return an action that stores records whole, keyed by these fields of their bodies.

    `ClusterImage.others` contains them, and snapshots as well.
    """

    def keep(builder: ImageBuilder, record: MetadataRecord) -> None:
        key = (kind, *(getattr(record.body, name) for name in fields))
        builder._keep(record, key)

    return keep


def _in_topics(
    action: Callable[[TopicsEdit, MetadataRecord], None],
) -> Callable[[ImageBuilder, MetadataRecord], None]:
    def apply(builder: ImageBuilder, record: MetadataRecord) -> None:
        action(builder._topics, record)

    return apply


class ImageBuilder:
    """A builder that applies records to an image."""

    __slots__ = (
        "_acl_ids",
        "_acls",
        "_base",
        "_brokers",
        "_change",
        "_configs",
        "_controllers",
        "_features",
        "_others",
        "_producer_ids",
        "_quotas",
        "_scram_forms",
        "_topics",
        "_transaction",
    )

    def __init__(self, image: ClusterImage) -> None:
        self._base = image
        self._change = ImageChange()
        self._topics = TopicsEdit(image, self._change)
        # Created with the first record of their kind.
        self._configs: MapEdit[ConfigKey, Mapping[str, str]] | None = None
        self._acls: MapEdit[bytes, AclEntry] | None = None
        self._acl_ids: MapEdit[AclEntry, bytes] | None = None
        self._quotas: MapEdit[QuotaEntity, Mapping[str, float]] | None = None
        self._others: MapEdit[Hashable, MetadataRecord] | None = None
        self._scram_forms: dict[int, dict[ScramForm, int]] | None = None
        self._brokers: dict[int, BrokerImage] | None = None
        self._controllers: dict[int, MetadataRecord] | None = None
        self._features: dict[str, int] | None = None
        self._producer_ids = image.producer_ids
        transaction = image.open_transaction
        self._transaction: list[MetadataRecord] | None = (
            None if transaction is None else list(transaction)
        )

    def apply(self, record: MetadataRecord) -> None:
        """Apply one record.

        Raises:
            KafkaError: UNSUPPORTED_VERSION for an unknown kind.
        """
        kind = record.type
        if self._transaction is not None:
            if kind is RecordType.END_TRANSACTION:
                pending, self._transaction = self._transaction, None
                for pending_record in pending:
                    self.apply(pending_record)
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
        """Return the image and its changes; the builder must not be used afterwards.

        `offset` follows the last record, `epoch` is that record's leader epoch.
        """
        return in_one_go(self.finish(offset=offset, epoch=epoch))

    def finish(self, *, offset: int, epoch: int) -> Steps[tuple[ClusterImage, ImageChange]]:
        """Do as `build`, in steps."""
        topics, topics_by_id = yield from self._topics.finish()
        base = self._base
        image = ClusterImage(
            offset=offset,
            epoch=epoch,
            topics=topics,
            topics_by_id=topics_by_id,
            configs=(yield from finished(self._configs, base.configs)),
            brokers=base.brokers if self._brokers is None else self._brokers,
            controllers=base.controllers if self._controllers is None else self._controllers,
            features=base.features if self._features is None else self._features,
            client_quotas=(yield from finished(self._quotas, base.client_quotas)),
            producer_ids=self._producer_ids,
            acls=(yield from finished(self._acls, base.acls)),
            acl_ids=(yield from finished(self._acl_ids, base.acl_ids)),
            others=(yield from finished(self._others, base.others)),
            scram_forms=base.scram_forms if self._scram_forms is None else self._scram_forms,
            open_transaction=None if self._transaction is None else tuple(self._transaction),
        )
        return image, self._change

    # Configs, features, producer ids, stored records

    def _apply_remove_topic(self, record: MetadataRecord) -> None:
        key = (ResourceType.TOPIC, self._topics.remove(record).name)
        for name in self._config_values(key):
            self._put_config(key, name, None)

    def _config_values(self, key: ConfigKey) -> Mapping[str, str]:
        configs = self._base.configs if self._configs is None else self._configs
        return configs.get(key) or NO_CONFIGS

    def _apply_config(self, record: MetadataRecord) -> None:
        body = record.body
        self._put_config((body.resource_type, body.resource_name), body.name, body.value)

    def _put_config(self, key: ConfigKey, name: str, value: str | None) -> None:
        values = dict(self._config_values(key))
        before = values.get(name)
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value
        if self._configs is None:
            self._configs = MapEdit(self._base.configs)
        if values:
            self._configs[key] = values
        else:
            self._configs.discard(key)
        changes = self._change.configs.setdefault(key, {})
        first = changes.get(name)
        changes[name] = ConfigChange(before if first is None else first.before, value)

    def _apply_quota(self, record: MetadataRecord) -> None:
        body = record.body
        entity = entity_of((part.entity_type, part.entity_name) for part in body.entity)
        if self._quotas is None:
            self._quotas = MapEdit(self._base.client_quotas)
        values = dict(self._quotas.get(entity) or {})
        if body.remove:
            values.pop(body.key, None)
        else:
            values[body.key] = body.value
        if values:
            self._quotas[entity] = values
        else:
            self._quotas.discard(entity)
        self._change.quotas.add(entity)

    def _apply_feature_level(self, record: MetadataRecord) -> None:
        if self._features is None:
            self._features = dict(self._base.features)
        name, level = record.body.name, record.body.feature_level
        if level == 0:
            self._features.pop(name, None)
        else:
            self._features[name] = level
        self._change.features[name] = (self._base.features.get(name, 0), level)

    def _apply_producer_ids(self, record: MetadataRecord) -> None:
        self._producer_ids = record

    def _begin_transaction(self, record: MetadataRecord) -> None:
        del record
        self._transaction = []

    def _apply_acl(self, record: MetadataRecord) -> None:
        self._put_acl(record.body.id, entry_of(record.body))

    def _apply_remove_acl(self, record: MetadataRecord) -> None:
        self._put_acl(record.body.id, None)

    def _put_acl(self, acl_id: bytes, after: AclEntry | None) -> None:
        if self._acls is None or self._acl_ids is None:
            self._acls, self._acl_ids = MapEdit(self._base.acls), MapEdit(self._base.acl_ids)
        before = self._acls.get(acl_id)
        if before is not None and self._acl_ids.get(before) == acl_id:
            self._acl_ids.discard(before)
        if after is None:
            self._acls.discard(acl_id)
        else:
            self._acls[acl_id] = after
            self._acl_ids[after] = acl_id
        self._change.acls[acl_id] = AclChange(self._base.acls.get(acl_id), after)

    def _keep(self, record: MetadataRecord, key: tuple[Hashable, ...]) -> None:
        """Store a record whole under a key, or remove it if its type is a removal."""
        if self._others is None:
            self._others = MapEdit(self._base.others)
        is_removal = record.type.name.startswith("REMOVE_")
        if key[0] == "scram":
            self._count_form(self._others.get(key), None if is_removal else record)
        if is_removal:
            self._others.discard(key)
        else:
            self._others[key] = record

    def _count_form(self, before: MetadataRecord | None, after: MetadataRecord | None) -> None:
        if self._scram_forms is None:  # there are only two or three forms
            self._scram_forms = {
                mechanism: dict(counts) for mechanism, counts in self._base.scram_forms.items()
            }
        for record, change in ((before, -1), (after, 1)):
            form = None if record is None else form_of(scram_keys(record.body))
            if record is not None and form is not None:
                forms = self._scram_forms.setdefault(record.body.mechanism, {})
                forms[form] = forms.get(form, 0) + change
                if not forms[form]:
                    del forms[form]
                if not forms:
                    del self._scram_forms[record.body.mechanism]

    # Brokers and controllers

    def _own_brokers(self) -> dict[int, BrokerImage]:
        # Copies of this small map cost little.
        if self._brokers is None:
            self._brokers = dict(self._base.brokers)
        return self._brokers

    def _put_broker(self, node_id: int, after: BrokerImage | None) -> None:
        brokers = self._own_brokers()
        if after is None:
            brokers.pop(node_id, None)
        else:
            brokers[node_id] = after
        self._change.brokers[node_id] = BrokerChange(self._base.brokers.get(node_id), after)

    def _apply_register_broker(self, record: MetadataRecord) -> None:
        self._put_broker(record.body.broker_id, broker_of(record.body))

    def _apply_unregister_broker(self, record: MetadataRecord) -> None:
        self._put_broker(record.body.broker_id, None)

    def _apply_fence(self, record: MetadataRecord) -> None:
        broker = self._own_brokers().get(record.body.id)
        if broker is not None:
            fenced = record.type is RecordType.FENCE_BROKER
            self._put_broker(broker.node_id, broker._replace(fenced=fenced))

    def _apply_broker_change(self, record: MetadataRecord) -> None:
        body = record.body
        broker = self._own_brokers().get(body.broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"a change names broker {body.broker_id}, which is not registered",
            )
        self._put_broker(broker.node_id, merge_broker(broker, body))

    def _apply_register_controller(self, record: MetadataRecord) -> None:
        self._own_controllers()[record.body.controller_id] = record

    def _apply_unregister_controller(self, record: MetadataRecord) -> None:
        self._own_controllers().pop(record.body.controller_id, None)

    def _own_controllers(self) -> dict[int, MetadataRecord]:
        if self._controllers is None:
            self._controllers = dict(self._base.controllers)
        return self._controllers

    def _apply_nothing(self, record: MetadataRecord) -> None:
        """Skip NoOp records, and ends of transactions without a begin."""

    _ACTIONS: ClassVar[dict[RecordType, Callable[[Any, MetadataRecord], None]]] = {
        RecordType.REGISTER_BROKER: _apply_register_broker,
        RecordType.UNREGISTER_BROKER: _apply_unregister_broker,
        RecordType.TOPIC: _in_topics(TopicsEdit.add),
        RecordType.PARTITION: _in_topics(TopicsEdit.add_partition),
        RecordType.CONFIG: _apply_config,
        RecordType.PARTITION_CHANGE: _in_topics(TopicsEdit.change_partition),
        RecordType.FENCE_BROKER: _apply_fence,
        RecordType.UNFENCE_BROKER: _apply_fence,
        RecordType.REMOVE_TOPIC: _apply_remove_topic,
        RecordType.DELEGATION_TOKEN: _keep_as("token", "token_id"),
        RecordType.USER_SCRAM_CREDENTIAL: _keep_as("scram", "name", "mechanism"),
        RecordType.FEATURE_LEVEL: _apply_feature_level,
        RecordType.CLIENT_QUOTA: _apply_quota,
        RecordType.PRODUCER_IDS: _apply_producer_ids,
        RecordType.BROKER_REGISTRATION_CHANGE: _apply_broker_change,
        RecordType.ACCESS_CONTROL_ENTRY: _apply_acl,
        RecordType.REMOVE_ACCESS_CONTROL_ENTRY: _apply_remove_acl,
        RecordType.NO_OP: _apply_nothing,
        RecordType.ZK_MIGRATION_STATE: _keep_as("zookeeper"),
        RecordType.REMOVE_USER_SCRAM_CREDENTIAL: _keep_as("scram", "name", "mechanism"),
        RecordType.BEGIN_TRANSACTION: _begin_transaction,
        RecordType.END_TRANSACTION: _apply_nothing,
        RecordType.ABORT_TRANSACTION: _apply_nothing,
        RecordType.REMOVE_DELEGATION_TOKEN: _keep_as("token", "token_id"),
        RecordType.REGISTER_CONTROLLER: _apply_register_controller,
        RecordType.CLEAR_ELR: _in_topics(TopicsEdit.clear_elr),
        RecordType.UNREGISTER_CONTROLLER: _apply_unregister_controller,
    }
