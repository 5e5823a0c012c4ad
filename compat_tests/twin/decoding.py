"""Records of internal logs as lines of text, without parts that differ between runs."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.support.protocol.message_schemas import schema_of
from wirebroker.codecs.coordinator_records import (
    GroupKey,
    OffsetKey,
    decode_committed_offset,
    decode_group_metadata,
    decode_key,
)
from wirebroker.codecs.metadata_records import RecordType, decode_metadata_record, record_message
from wirebroker.codecs.primitives import ZERO_UUID, uuid_text
from wirebroker.codecs.records.control import decode_control_record
from wirebroker.codecs.transaction_records import decode_transaction_key, decode_transaction_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiling.messages.schema import StructSchema
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.record import Record

_MEMBER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TRANSACTION_TIMES = ("transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms")
_DRAWN = {"incarnation_id": "an id of this start"}


class Ids:
    def __init__(self) -> None:
        self._names = {ZERO_UUID: "no id"}
        self._texts: dict[str, str] = {}
        self._members: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self.broker_epochs: list[int] = []

    def add_topic(self, topic_id: bytes, name: str) -> None:
        """Name a topic id; a second topic with that name gets number 2."""
        if topic_id not in self._names:
            self._counts[name] += 1
            self._names[topic_id] = f"topic {name} {self._counts[name]}"
            self._texts[uuid_text(topic_id)] = self._names[topic_id]

    def name(self, value: bytes) -> str:
        return self._names.get(value) or uuid_text(value)

    def member(self, text: str) -> str:
        """Return a text with its member ids named in order of occurrence."""

        def named(match: re.Match[str]) -> str:
            return self._members.setdefault(match[0], f"member {len(self._members) + 1}")

        return _MEMBER.sub(named, text)

    def replace_texts(self, text: str) -> str:
        """Return a text with its topic ids named."""
        for id_text, name in self._texts.items():
            text = text.replace(id_text, f"<{name}>")
        return text


def control_lines(header: BatchHeader, records: list[Record]) -> Iterator[str]:
    """Describe control records: of the metadata log, or transaction markers."""
    yield f"control batch, {_batch_line(header, records)}"
    for record in records:
        decoded = decode_control_record(record.key or b"", record.value or b"")
        text = re.sub(r"timestamp=\d+", "timestamp=NOW", str(decoded))
        yield f"control {text}"


def metadata_lines(header: BatchHeader, records: list[Record], ids: Ids) -> Iterator[str]:
    """Describe one batch of the metadata log, one line per record, without offsets."""
    yield _batch_line(header, records)
    # Configs of a resource and partitions of a broker come in the order of a hash table.
    unordered: list[str] = []
    for record in records:
        decoded = decode_metadata_record(record.value or b"")
        schema = schema_of(record_message(decoded.type))
        fields = _fields(schema.body, decoded.version, decoded.body, ids)
        line = f"{decoded.type.name} v{decoded.version} {fields}"
        if decoded.type in {RecordType.CONFIG, RecordType.PARTITION_CHANGE}:
            unordered.append(line)
            continue
        yield from sorted(unordered)
        unordered.clear()
        yield line
    yield from sorted(unordered)


def coordinator_lines(header: BatchHeader, records: list[Record], ids: Ids) -> Iterator[str]:
    """Describe one batch of `__consumer_offsets`, one line per record."""
    yield f"at {header.base_offset} {_batch_line(header, records)}"
    for record in records:
        yield f"{_coordinator_key(record.key or b'')} = {_coordinator_value(record, ids)}"


def _batch_line(header: BatchHeader, records: list[Record]) -> str:
    return (
        f"batch of {len(records)}, epoch {header.leader_epoch}, attributes {header.attributes},"
        f" producer {header.producer_id} {header.producer_epoch} {header.base_sequence}"
    )


def transaction_lines(header: BatchHeader, records: list[Record]) -> Iterator[str]:
    """Describe one batch of `__transaction_state`, one line per record."""
    yield f"at {header.base_offset} {_batch_line(header, records)}"
    for record in records:
        value = record.value or b""
        state: Any = decode_transaction_value(value)
        for name in _TRANSACTION_TIMES:
            if getattr(state, name) > 0:
                setattr(state, name, "NOW")
        yield f"{decode_transaction_key(record.key or b'')} = v{int.from_bytes(value[:2])} {state}"


def _coordinator_key(key: bytes) -> str:
    return f"{int.from_bytes(key[:2])} {decode_key(key)}"


def _coordinator_value(record: Record, ids: Ids) -> str:
    value = record.value
    if value is None:
        return "tombstone"
    version = f"v{int.from_bytes(value[:2])} "
    decoded = decode_key(record.key or b"")
    if isinstance(decoded, OffsetKey):
        committed = decode_committed_offset(value)
        named = {"commit_timestamp_ms": "NOW", "topic_id": ids.name(committed.topic_id)}
        return version + str({**committed._asdict(), **named})
    if isinstance(decoded, GroupKey):
        group: Any = decode_group_metadata(value)
        group.current_state_timestamp = "NOW"
        return version + ids.member(str(group))
    return value.hex()


def _fields(schema: StructSchema, version: int, value: Any, ids: Ids) -> str:
    """Return a struct as `{name: value, …}` with this version's fields."""
    parts: list[str] = []
    for field in schema.fields:
        if version not in field.versions and version not in field.tagged_versions:
            continue
        field_value = getattr(value, field.name)
        if field.struct is not None and field.is_array and field_value is not None:
            inner = (_fields(field.struct, version, element, ids) for element in field_value)
            # Endpoints and features come in the order of a hash table.
            text = f"[{', '.join(sorted(inner))}]"
        elif field.name in _DRAWN:
            text = _DRAWN[field.name]
        elif field.name == "broker_epoch" and field_value in ids.broker_epochs:
            text = "of the registration"
        else:
            text = _scalar(field_value, ids)
        parts.append(f"{field.name}: {text}")
    return "{" + ", ".join(parts) + "}"


def _scalar(value: Any, ids: Ids) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_scalar(element, ids) for element in value)}]"
    if isinstance(value, bytes) and len(value) == 16:
        return ids.name(value)
    return repr(value)
