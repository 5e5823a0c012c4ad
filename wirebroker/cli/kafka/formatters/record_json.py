"""Records of internal topics as JSON, as Kafka's generated converters write them.

Names are in camel case, uuids are text and bytes base64. Fields that the version lacks and tagged
fields at their defaults are omitted.

Source: Kafka's CoordinatorRecordJsonConverters.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from wirebroker.base.text import lower_camel_case
from wirebroker.codecs.coordinator_records import (
    GROUP_KIND,
    LEGACY_OFFSET_KIND,
    OFFSET_KIND,
    decode_group_metadata,
    decode_key,
    decode_offset_commit,
)
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.group_records import (
    GroupRecordKind,
    decode_record_key,
    decode_record_value,
)
from wirebroker.codecs.primitives import ZERO_UUID, uuid_text
from wirebroker.codecs.share_state_records import (
    ShareStateKind,
    decode_share_state_key,
    decode_share_state_value,
)
from wirebroker.codecs.transaction_records import (
    TRANSACTION_KIND,
    decode_transaction_key,
    decode_transaction_value,
)
from wirebroker.coordinator.transactions.metadata import TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.codecs.values import Struct

_TYPE_BYTES: Final = 2
_BEYOND: Final = 1 << 15  # every version
_CLASSIC_KEY_FIELDS: Final = ("group", "topic", "partition")


class RecordForm(NamedTuple):
    """The form of one kind of record.

    Attributes:
        key: Returns the fields of a key.
        value: Decodes a value.
        versions: Fields of only some versions.
        defaults: Values at which fields are omitted.
    """

    key: Callable[[bytes], dict[str, Any]]
    value: Callable[[bytes], Any]
    versions: Mapping[str, range] = {}
    defaults: Mapping[str, object] = {}

    def value_fields(self, value: bytes) -> tuple[int, dict[str, Any]]:
        """Return a value's version and fields.

        Raises:
            KafkaError: UNSUPPORTED_VERSION.
            MalformedFrameError.
        """
        struct = self.value(value)
        version = int.from_bytes(value[:_TYPE_BYTES], "big", signed=True)
        return version, fields_of(struct, version, self.versions, self.defaults)


def type_of(key: bytes) -> int:
    """Return the number of a record's kind.

    Raises:
        MalformedFrameError.
    """
    if len(key) < _TYPE_BYTES:
        raise MalformedFrameError("Could not read version from key's buffer.")
    return int.from_bytes(key[:_TYPE_BYTES], "big", signed=True)


def fields_of(
    struct: Struct,
    version: int,
    versions: Mapping[str, range],
    defaults: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return a struct as JSON; the last two arguments are those of RecordForm."""
    shown: dict[str, Any] = _shown(struct.as_dict(), version, versions, defaults or {})
    return shown


def _shown(
    value: Any, version: int, versions: Mapping[str, range], defaults: Mapping[str, object]
) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            lower_camel_case(name): _shown(_named(name, field_value), version, versions, defaults)
            for name, field_value in fields.items()
            if version in versions.get(name, (version,))
            and not (name in defaults and field_value == defaults[name])
        }
    if isinstance(value, list):
        rows = cast("Sequence[Any]", value)
        return [_shown(item, version, versions, defaults) for item in rows]
    return value


def _named(field: str, value: Any) -> Any:
    """Convert a value to JSON: names of states, uuids, bytes in base64."""
    if field == "transaction_status":
        is_known = value in TransactionState._value2member_map_
        return TransactionState(value).label if is_known else str(value)
    if field == "topic_id":
        return uuid_text(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _classic_key(key: bytes) -> dict[str, Any]:
    return dict(zip(_CLASSIC_KEY_FIELDS, decode_key(key), strict=False))


def _transaction_key(key: bytes) -> dict[str, Any]:
    return {"transactionalId": decode_transaction_key(key)}


def _group_record_key(key: bytes) -> dict[str, Any]:
    return _fields_of_key(decode_record_key(key))


def _share_state_key(key: bytes) -> dict[str, Any]:
    return _fields_of_key(decode_share_state_key(key))


def _fields_of_key(key: Any) -> dict[str, Any]:
    fields: dict[str, Any] = key._asdict()
    del fields["kind"]
    return {lower_camel_case(name): _named(name, value) for name, value in fields.items()}


# Kafka's defaults of tagged fields, by kind.
_TAGGED: Final[Mapping[GroupRecordKind, Mapping[str, object]]] = {
    GroupRecordKind.CONSUMER_GROUP_METADATA: {"metadata_hash": 0},
    GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA: {
        "classic_member_metadata": {"session_timeout_ms": 0, "supported_protocols": []}
    },
    GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: {"assignment_timestamp": 0},
    GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: {"assignment_epochs": []},
    GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: {"assignment_timestamp": 0},
    GroupRecordKind.STREAMS_GROUP_METADATA: {
        "validated_topology_epoch": -1,
        "last_assignment_configs": [],
        "stored_description_topology_epoch": -1,
        "failed_description_topology_epoch": -1,
    },
    GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: {"assignment_timestamp": 0},
    GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: {"assignment_epochs": []},
}
_OFFSET: Final = RecordForm(
    _classic_key,
    decode_offset_commit,
    {"leader_epoch": range(3, _BEYOND), "expire_timestamp": range(1, 2)},
    {"topic_id": ZERO_UUID},
)
_GROUP: Final = RecordForm(
    _classic_key,
    decode_group_metadata,
    {
        "current_state_timestamp": range(2, _BEYOND),
        "group_instance_id": range(3, _BEYOND),
        "rebalance_timeout": range(1, _BEYOND),
    },
)
# The forms of each internal topic's records, by their numbers.
OFFSET_TOPIC_FORMS: Final[Mapping[int, RecordForm]] = {
    LEGACY_OFFSET_KIND: _OFFSET,
    OFFSET_KIND: _OFFSET,
    GROUP_KIND: _GROUP,
    **{
        kind: RecordForm(
            _group_record_key,
            partial(decode_record_value, kind),
            defaults=_TAGGED.get(kind, {}),
        )
        for kind in GroupRecordKind
    },
}
TRANSACTION_FORMS: Final[Mapping[int, RecordForm]] = {
    TRANSACTION_KIND: RecordForm(
        _transaction_key,
        decode_transaction_value,
        defaults={
            "previous_producer_id": -1,
            "next_producer_id": -1,
            "next_producer_epoch": -1,
            "client_transaction_version": 0,
        },
    )
}
SHARE_STATE_FORMS: Final[Mapping[int, RecordForm]] = {
    kind: RecordForm(
        _share_state_key,
        partial(decode_share_state_value, kind),
        defaults={"delivery_complete_count": -1},
    )
    for kind in ShareStateKind
}
