"""Records of Kafka internal topics as dicts of the protocol's field names.

A key or value of unknown kind is None: the caller shows its bytes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from wirebroker.codecs.coordinator_records import (
    GroupKey,
    OffsetKey,
    UnknownKey,
    decode_committed_offset,
    decode_group_metadata,
)
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.group_records import decode_record_key, decode_record_value
from wirebroker.codecs.metadata_records import RecordType, decode_metadata_record
from wirebroker.codecs.records.control import control_type, decode_control_record
from wirebroker.codecs.share_state_records import decode_share_state_key, decode_share_state_value
from wirebroker.codecs.transaction_records import decode_transaction_key, decode_transaction_value
from wirebroker.codecs.values import Struct
from wirebroker.config.lookup import row_of
from wirebroker.coordinator.controller.image.cluster_image import ResourceType
from wirebroker.inspect.rows.file_kinds import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.codecs.records.record import Record

    Decoder = Callable[[Record], "dict[str, Any] | None"]


HIDDEN: Final = "(hidden)"


def decoder_for(topic: str | None) -> Decoder | None:
    """Return the decoder for an internal topic; None for other topics."""
    return _DECODERS.get(topic or "")


def decoded(decoder: Decoder, record: Record) -> dict[str, Any] | None:
    """Return a decoded record, or its fault under `error`."""
    try:
        return decoder(record)
    except (KafkaError, MalformedFrameError) as error:
        return {"error": error.message if isinstance(error, KafkaError) else str(error)}


def control(record: Record) -> dict[str, Any] | None:
    """Decode a control record: the end of a transaction, or a KRaft one."""
    kind = control_type(record.key)
    control_record = decode_control_record(record.key, record.value)
    if kind is None or control_record is None:
        return None
    fields = plain(control_record)
    fields.pop("is_commit", None)  # the type says it
    return {"control_type": kind.name, **fields}


def metadata(record: Record) -> dict[str, Any] | None:
    """Decode a record of the metadata log."""
    if record.value is None:
        return None
    metadata_record = decode_metadata_record(record.value)
    fields = metadata_record.body.as_dict()
    if metadata_record.type is RecordType.USER_SCRAM_CREDENTIAL:
        fields |= dict.fromkeys(("salt", "stored_key", "server_key"), HIDDEN)
    elif metadata_record.type is RecordType.CONFIG and _is_secret(
        fields["resource_type"], fields["name"]
    ):
        fields["value"] = HIDDEN
    return {"record_type": metadata_record.type.name, "version": metadata_record.version, **fields}


def is_hidden_in(fields: dict[str, Any]) -> bool:
    """Return whether a field is hidden, so that the record's bytes must be hidden too."""
    return HIDDEN in fields.values()


def _is_secret(resource_type: int, config_name: str) -> bool:
    row = row_of(config_name)
    if row is None:  # such as a plugin's: it may be a secret, as in Kafka
        return resource_type == ResourceType.BROKER
    return row.is_sensitive


def offsets(record: Record) -> dict[str, Any] | None:
    """Decode a record of __consumer_offsets."""
    if record.key is None:
        return None
    key = decode_record_key(record.key)
    if isinstance(key, UnknownKey):
        return None
    if isinstance(key, OffsetKey):
        return _keyed("OFFSET_COMMIT", key, record.value, decode_committed_offset)
    if isinstance(key, GroupKey):
        return _keyed("GROUP_METADATA", key, record.value, decode_group_metadata)
    return _keyed(key.kind.name, key, record.value, partial(decode_record_value, key.kind))


def share_states(record: Record) -> dict[str, Any] | None:
    """Decode a record of __share_group_state."""
    if record.key is None:
        return None
    key = decode_share_state_key(record.key)
    if key is None:
        return None
    return _keyed(key.kind.name, key, record.value, partial(decode_share_state_value, key.kind))


def transactions(record: Record) -> dict[str, Any] | None:
    """Decode a record of __transaction_state."""
    if record.key is None:
        return None
    transactional_id = decode_transaction_key(record.key)
    if transactional_id is None:
        return None
    key = {"transactional_id": transactional_id}
    return _keyed("TRANSACTION", key, record.value, decode_transaction_value)


def _keyed(
    kind: str, key: Any, value: bytes | None, decode: Callable[[bytes], Any]
) -> dict[str, Any]:
    names: dict[str, Any] = plain(key)
    names.pop("kind", None)  # the type says it
    fields: dict[str, Any] = {} if value is None else plain(decode(value))
    return {"record_type": kind, **names, "is_tombstone": value is None, **fields}


def plain(value: Any) -> Any:
    """Convert named tuples and structs to dicts, recursively."""
    if isinstance(value, Struct):
        return value.as_dict()
    if isinstance(value, tuple) and hasattr(cast("Any", value), "_asdict"):
        fields: dict[str, Any] = cast("Any", value)._asdict()
        return {name: plain(field_value) for name, field_value in fields.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return value


_DECODERS: dict[str, Decoder] = {
    METADATA_TOPIC: metadata,
    OFFSETS_TOPIC: offsets,
    TRANSACTIONS_TOPIC: transactions,
    SHARE_STATE_TOPIC: share_states,
}
