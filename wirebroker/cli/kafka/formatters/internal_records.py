"""Records of Kafka internal topics as JSON.

    {"key":{"type":1,"data":{…}},"value":{"version":4,"data":{…}}}

Records are not separated, and those of other types are not printed. Source: Kafka's
CoordinatorRecordMessageFormatter.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from wirebroker.base.text import lower_camel_case
from wirebroker.client.errors import ClientError
from wirebroker.codecs.coordinator_records import (
    GROUP_KIND,
    LEGACY_OFFSET_KIND,
    OFFSET_KIND,
    decode_group_metadata,
    decode_key,
    decode_offset_commit,
)
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.primitives import ZERO_UUID, uuid_text
from wirebroker.codecs.transaction_records import (
    TRANSACTION_KIND,
    decode_transaction_key,
    decode_transaction_value,
)
from wirebroker.coordinator.transactions.metadata import TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

_TYPE_BYTES: Final = 2
_BEYOND: Final = 1 << 15  # every version
_KEY_FIELDS: Final = ("group", "topic", "partition")


class InternalRecords(NamedTuple):
    """A record type and the fields of its JSON.

    Attributes:
        versions: Fields of only some versions.
        defaults: Values at which fields are omitted.
    """

    types: frozenset[int]
    key: Callable[[bytes], dict[str, Any]]
    value: Callable[[bytes], Any]
    versions: Mapping[str, range]
    defaults: Mapping[str, object]

    def line_of(
        self, _topic_partition: TopicPartition, record: Record, _timestamp_type: str
    ) -> bytes:
        """Return a record as JSON without a line end; empty for another type.

        Raises:
            ClientError: It cannot be read.
        """
        if record.key is None:
            return b""
        try:
            number = _type_of(record.key)
            if number not in self.types:
                return b""
            row = {
                "key": {"type": number, "data": self.key(record.key)},
                "value": self._value(record.value),
            }
        except (KafkaError, MalformedFrameError) as error:
            raise ClientError(
                f"Could not read record at offset {record.offset} due to: {error}"
            ) from None
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()

    def _value(self, value: bytes | None) -> dict[str, Any] | None:
        if value is None:
            return None
        version = int.from_bytes(value[:_TYPE_BYTES], "big", signed=True)
        fields = self.value(value).as_dict()
        return {"version": version, "data": self._shown(fields, version)}

    def _shown(self, value: Any, version: int) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {
                lower_camel_case(name): self._shown(_named(name, field_value), version)
                for name, field_value in fields.items()
                if version in self.versions.get(name, (version,))
                and not (name in self.defaults and field_value == self.defaults[name])
            }
        if isinstance(value, list):
            rows = cast("Sequence[Any]", value)
            return [self._shown(item, version) for item in rows]
        return value


def _type_of(key: bytes) -> int:
    if len(key) < _TYPE_BYTES:
        raise MalformedFrameError("Could not read version from key's buffer.")
    return int.from_bytes(key[:_TYPE_BYTES], "big", signed=True)


def _named(field: str, value: Any) -> Any:
    """Convert a value to JSON: names of states, uuids, bytes in base64."""
    if field == "transaction_status":
        return TransactionState(value).label
    if field == "topic_id":
        return uuid_text(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _key_fields(key: bytes) -> dict[str, Any]:
    return dict(zip(_KEY_FIELDS, decode_key(key), strict=False))


def _transaction_fields(key: bytes) -> dict[str, Any]:
    return {"transactionalId": decode_transaction_key(key)}


OFFSETS: Final = InternalRecords(
    frozenset({LEGACY_OFFSET_KIND, OFFSET_KIND}),
    _key_fields,
    decode_offset_commit,
    {"leader_epoch": range(3, _BEYOND), "expire_timestamp": range(1, 2)},
    {"topic_id": ZERO_UUID},
)
GROUPS: Final = InternalRecords(
    frozenset({GROUP_KIND}),
    _key_fields,
    decode_group_metadata,
    {
        "current_state_timestamp": range(2, _BEYOND),
        "group_instance_id": range(3, _BEYOND),
        "rebalance_timeout": range(1, _BEYOND),
    },
    {},
)
TRANSACTIONS: Final = InternalRecords(
    frozenset({TRANSACTION_KIND}),
    _transaction_fields,
    decode_transaction_value,
    {},
    {
        "previous_producer_id": -1,
        "next_producer_id": -1,
        "next_producer_epoch": -1,
        "client_transaction_version": 0,
    },
)
