"""A response as lines, one per field, without values that differ between runs.

Ids are replaced by names in order of appearance: T1, T2, … for topics, P1, … for producers, S1, …
for fetch sessions, and M1, … for generated member ids with their prefix (`client-M1`). The cluster
id, hosts, ports and times near the clock become words; throttle times are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_records, read_batch_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiling.messages.schema import Field, MessageSchema, StructSchema

_ZERO_UUID = bytes(16)
_NEAR_MS = 600_000  # a transcript takes seconds; its own times are exactly NOW or years away
_DAY_MS = 86_400_000
_MAX_BYTES = 64 << 20

_NO_PORT = -1
# Steps may use this name after a DescribeLogDirs response.
_DIRECTORY = "DIRECTORY"
_LEFT_OUT = frozenset({"throttle_time_ms", "finalized_features_epoch"})
_WORDS = {
    "cluster_id": "CLUSTER",
    "host": "HOST",
    "port": "PORT",
    # the wording is not part of the protocol
    "error_message": "some text",
    "batch_index_error_message": "some text",
    "documentation": "some text",
    "log_dir": _DIRECTORY,
    "total_bytes": "BYTES",
    "usable_bytes": "BYTES",
}
# Responses whose error messages are compared as well: clients show them to their users.
_WITH_TEXTS = frozenset(
    {
        "AlterShareGroupOffsetsResponse",
        "ConsumerGroupDescribeResponse",
        "ConsumerGroupHeartbeatResponse",
        "DeleteShareGroupOffsetsResponse",
        "DeleteShareGroupStateResponse",
        "DescribeShareGroupOffsetsResponse",
        "InitializeShareGroupStateResponse",
        "ReadShareGroupStateResponse",
        "ReadShareGroupStateSummaryResponse",
        "ShareGroupDescribeResponse",
        "ShareGroupHeartbeatResponse",
        "StreamsGroupDescribeResponse",
        "StreamsGroupHeartbeatResponse",
        "StreamsGroupTopologyDescriptionUpdateResponse",
        "WriteShareGroupStateResponse",
    }
)
# The endpoints in them are the clients', as requests state them.
_STREAMS = "StreamsGroup"
# Letters of ids, and each kind's lowest valid id.
_LETTERS = {"producer_id": ("P", 0), "session_id": ("S", 1)}
# A generated member id: the client id or group.instance.id, and a UUID; or only a UUID.
_MEMBER_ID = re.compile(r"(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
_CONSUMER_MEMBER_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]{22}")
# After this the messages of libraries differ.
_NOT_A_REGEX = "is not a valid regular expression: "
# A failure of Kafka's code.
_UNEXPECTED = re.compile("(Cannot invoke|The server experienced an unexpected error) .*")
_MEMBERS = frozenset({"member_id", "leader"})
_TIMES = frozenset(
    {"timestamp", "log_append_time_ms", "transaction_start_time_ms", "last_timestamp"}
)
_ERRORS = frozenset({"error_code", "topic_config_error_code", "partition_error_code"})
# Arrays that Kafka orders by a hash table, with their keys.
_SORTED_BY = {
    "topics": ("name", "topic", "topic_name"),
    "responses": ("name", "topic", "topic_name", "resource_name"),
    "results": ("name", "topic_name", "resource_name", "group_id"),
    "configs": ("name",),
    "api_keys": ("api_key",),
    "supported_features": ("name",),
    "finalized_features": ("name",),
    "partitions": ("partition_index", "partition"),
    "partition_responses": ("index",),
    "groups": ("group_id",),
    "coordinators": ("key",),
    "config_resources": ("resource_type", "resource_name"),
    "transaction_states": ("transactional_id",),
    "results_by_topic_v3_and_below": ("name",),
    "results_by_partition": ("partition_index",),
    "results_by_transaction": ("transactional_id",),
    "topic_results": ("name",),
    "active_tasks": ("subtopology_id",),
    "standby_tasks": ("subtopology_id",),
    "active_partitions": ("topic",),
    "standby_partitions": ("topic",),
    "client_tags": ("key",),
    "topic_configs": ("key",),
}
# Such arrays of topics without names, ordered by the ids' appearance.
_SORTED_BY_ID = frozenset(
    {
        ("ConsumerGroupCurrentMemberAssignmentValue", "assigned_partitions"),
        ("ConsumerGroupCurrentMemberAssignmentValue", "partitions_pending_revocation"),
        ("ConsumerGroupTargetAssignmentMemberValue", "topic_partitions"),
        ("ConsumerGroupDescribeResponse", "topic_partitions"),
        ("ConsumerGroupHeartbeatResponse", "topic_partitions"),
        ("OffsetFetchResponse", "topics"),
        ("DeleteShareGroupStateResponse", "results"),
        ("InitializeShareGroupStateResponse", "results"),
        ("ProduceResponse", "responses"),
        ("ReadShareGroupStateResponse", "results"),
        ("ReadShareGroupStateSummaryResponse", "results"),
        ("ShareAcknowledgeResponse", "responses"),
        ("ShareFetchResponse", "responses"),
        ("ShareGroupCurrentMemberAssignmentValue", "assigned_partitions"),
        ("ShareGroupDescribeResponse", "topic_partitions"),
        ("ShareGroupHeartbeatResponse", "topic_partitions"),
        ("ShareGroupStatePartitionMetadataValue", "deleting_topics"),
        ("ShareGroupStatePartitionMetadataValue", "initialized_topics"),
        ("ShareGroupStatePartitionMetadataValue", "initializing_topics"),
        ("ShareGroupTargetAssignmentMemberValue", "topic_partitions"),
        ("WriteShareGroupStateResponse", "results"),
    }
)
_SORTED_ITSELF = frozenset(
    {
        ("ConsumerGroupDescribeResponse", "partitions"),
        ("ConsumerGroupDescribeResponse", "subscribed_topic_names"),
        ("ConsumerGroupHeartbeatResponse", "partitions"),
        ("DescribeTransactionsResponse", "partitions"),
        ("ShareGroupCurrentMemberAssignmentValue", "partitions"),
        ("ShareGroupDescribeResponse", "partitions"),
        ("ShareGroupDescribeResponse", "subscribed_topic_names"),
        ("ShareGroupHeartbeatResponse", "partitions"),
        ("ShareGroupStatePartitionMetadataValue", "partitions"),
        ("ShareGroupTargetAssignmentMemberValue", "partitions"),
    }
)
# Arrays of many short elements.
_ON_ONE_LINE = frozenset(
    {
        ("ApiVersionsResponse", "api_keys"),
        ("CreateTopicsResponse", "configs"),
        ("DescribeConfigsResponse", "configs"),
    }
)
# Responses whose order is specified.
_IN_ORDER = frozenset(
    {
        "FetchResponse",
        "DescribeTopicPartitionsResponse",
        "ListOffsetsResponse",
        "LeaveGroupResponse",
    }
)
# APIs of the transcripts.
COVERED_KEYS = frozenset(
    {0, 1, 2, 3, *range(8, 17), 18, 19, 20, 22, 23, 32, 34, 35, 37, 42}
    | {43, 44, 45, 46, 47, 55, 60, 68, 69, 71, 72, 74, 75, 76, 77, *range(83, 94)}
)
# Other features may differ between brokers.
_COVERED_FEATURES = frozenset({"metadata.version"})


class Names:
    """The names of ids, in order of appearance.

    Args:
        now_ms: The value of NOW.
        near_ms: Maximum distance of the broker's times from it.
    """

    def __init__(self, *, now_ms: int, near_ms: int = _NEAR_MS) -> None:
        self.now_ms = now_ms
        self._near_ms = near_ms
        self.values: dict[str, Any] = {"NOW": now_ms}
        self._known: dict[tuple[str, Any], str] = {}

    def name(self, letter: str, value: Any) -> str:
        """Return the name of an id; create it for a new id."""
        id_name = self._known.get((letter, value))
        if id_name is None:
            id_name = self.new_name(letter)
            self._known[letter, value] = id_name
            self.values[id_name] = value
        return id_name

    def new_name(self, letter: str) -> str:
        return f"{letter}{1 + sum(1 for key in self._known if key[0] == letter)}"

    def member(self, member_id: str) -> str | None:
        """Return a comparable form of a generated member id; None for others."""
        match = _MEMBER_ID.fullmatch(member_id)
        if match is not None:
            return f"{match[1]}-{self.name('M', member_id)}"
        return self.name("M", member_id) if _CONSUMER_MEMBER_ID.fullmatch(member_id) else None

    def text(self, text: str) -> str:
        """Return a text with names for the generated member ids of earlier responses."""
        for (letter, value), id_name in self._known.items():
            if letter == "M":
                text = text.replace(value, id_name)
        return text

    def age(self, letter: str, value: Any) -> int:
        """Return an id's position in order of appearance; new ids come last."""
        id_name = self._known.get((letter, value))
        return len(self._known) + 1 if id_name is None else int(id_name[1:])

    def time(self, timestamp_ms: int) -> str:
        difference_ms = timestamp_ms - self.now_ms
        if difference_ms == 0:
            return "NOW"
        if abs(difference_ms) < self._near_ms:
            return "the broker's clock"
        return str(timestamp_ms) if abs(difference_ms) > _DAY_MS else f"NOW + {difference_ms}"


def lines_of(schema: MessageSchema, version: int, value: Any, names: Names) -> list[str]:
    return list(_Printer(schema.name, version, names).struct("", schema.body, value))


class _Printer:
    def __init__(self, message: str, version: int, names: Names) -> None:
        self._message = message
        self._version = version
        self._names = names

    def struct(self, path: str, schema: StructSchema, value: Any) -> Iterator[str]:
        for field in schema.fields:
            if self._version not in field.versions or field.name in _LEFT_OUT:
                continue
            inner = f"{path}.{field.name}" if path else field.name
            yield from self._field(inner, field, getattr(value, field.name))

    def _field(self, path: str, field: Field, value: Any) -> Iterator[str]:
        if field.type == "records" and value is not None:
            yield from self._records(path, value)
        elif value is None:
            yield f"{path} = null"
        elif field.is_array and field.struct:
            yield from self._array(path, field, value)
        elif field.is_array:
            items = sorted(value) if (self._message, field.name) in _SORTED_ITSELF else value
            yield f"{path} = [{', '.join(self._scalar(field, item) for item in items)}]"
        elif field.struct:
            yield from self.struct(path, field.struct, value)
        else:
            yield f"{path} = {self._scalar(field, value)}"

    def _array(self, path: str, field: Field, values: list[Any]) -> Iterator[str]:
        assert field.struct
        arranged = self._arranged(field, values)
        if not arranged:
            yield f"{path} = []"
        for label, value in self._labelled(field, arranged):
            inner = f"{path}[{label}]"
            if (self._message, field.name) in _ON_ONE_LINE:
                yield self._line(inner, field.struct, value)
            else:
                yield from self.struct(inner, field.struct, value)

    def _line(self, path: str, schema: StructSchema, value: Any) -> str:
        lines = (line.removeprefix("x.") for line in self.struct("x", schema, value))
        parts = (line.replace(" = ", " ", 1) for line in lines if not line.startswith("name = "))
        return f"{path} = {', '.join(parts)}"

    def _labelled(self, field: Field, values: list[Any]) -> Iterator[tuple[str, Any]]:
        """Label elements by their keys, so that an extra one does not shift the others."""
        counts: dict[str, int] = {}
        for number, value in enumerate(values):
            key = next((getattr(value, name) for name in self._keys(field)), number)
            label = str(number if key is None else key)
            counts[label] = counts.get(label, 0) + 1
            yield (label if counts[label] == 1 else f"{label} again"), value

    def _keys(self, field: Field) -> list[str]:
        assert field.struct
        field_names = {
            inner.name for inner in field.struct.fields if self._version in inner.versions
        }
        return [name for name in _SORTED_BY.get(field.name, ()) if name in field_names]

    def _arranged(self, field: Field, values: list[Any]) -> list[Any]:
        if field.name == "api_keys":
            values = [value for value in values if value.api_key in COVERED_KEYS]
        if field.name.endswith("_features"):
            values = [value for value in values if value.name in _COVERED_FEATURES]
        if field.name == "members" and self._message not in _IN_ORDER:
            return sorted(values, key=self._member_order)
        if field.name == "partitions_by_user_endpoint":
            return sorted(values, key=lambda value: repr(value.user_endpoint.as_dict()))
        if field.name == "active_producers":
            return sorted(values, key=self._producer_order)
        if self._is_by_id(field):
            return sorted(values, key=lambda topic: self._names.age("T", topic.topic_id))
        keys = self._keys(field)
        if not keys or self._message in _IN_ORDER:
            return values
        return sorted(values, key=lambda value: [_sortable(getattr(value, key)) for key in keys])

    def _is_by_id(self, field: Field) -> bool:
        key = (self._message, field.name)
        return key in _SORTED_BY_ID and not self._keys(field)

    def _member_order(self, member: Any) -> list[Any]:
        values = (getattr(member, name, None) for name in ("group_instance_id", "metadata"))
        # Members that chose their own ids are ordered by them.
        own_id = "" if is_generated(member.member_id) else member.member_id
        return [self._names.age("M", member.member_id), *map(repr, values), own_id]

    def _producer_order(self, producer: Any) -> tuple[int, int]:
        return self._names.age("P", producer.producer_id), producer.producer_id

    def _scalar(self, field: Field, value: Any) -> str:
        if field.type == "uuid":
            return self._uuid(value)
        if field.name in _ERRORS:
            return f"{value} {ErrorCode(value).name}"
        if field.name in _TIMES:
            return self._names.time(value)
        return self._name(field, value)

    def _name(self, field: Field, value: Any) -> str:
        member = self._names.member(value) if field.name in _MEMBERS else None
        if member is not None:
            return member
        letter, lowest = _LETTERS.get(field.name, ("", 0))
        if letter and value >= lowest:
            return self._names.name(letter, value)
        if self._message.startswith(_STREAMS) and field.name in {"host", "port"}:
            return _quoted(value)
        word = _WORDS.get(field.name)
        if word == _DIRECTORY and value:
            self._names.values[word] = value
        if not word or not value or value == _NO_PORT:
            return _quoted(value)
        return self._text(value) if self._is_text(field) else word

    def _is_text(self, field: Field) -> bool:
        return field.name == "error_message" and self._message in _WITH_TEXTS

    def _text(self, value: str) -> str:
        text, found, _ = self._names.text(value).partition(_NOT_A_REGEX)
        text = _UNEXPECTED.sub("some text", text)
        return _quoted(f"{text}{found}some text" if found else text)

    def _uuid(self, value: bytes) -> str:
        return "none" if value == _ZERO_UUID else self._names.name("T", value)

    def _records(self, path: str, data: bytes) -> Iterator[str]:
        """Print each batch with its records, and the number of bytes after the last whole batch."""
        if not data:
            yield f"{path} = empty"
        view = memoryview(data)
        position = 0
        number = 0
        while len(data) - position >= 61:
            header = read_batch_header(view, position)
            if position + header.size > len(data):
                break
            yield from self._batch(f"{path}[{number}]", view[position : position + header.size])
            position += header.size
            number += 1
        if position < len(data):
            yield f"{path} then {len(data) - position} bytes of the next batch"

    def _batch(self, path: str, view: memoryview) -> Iterator[str]:
        header = read_batch_header(view, 0)
        yield f"{path} = offsets {header.base_offset} to {header.last_offset}"
        yield f"{path}.leader_epoch = {header.leader_epoch}"
        yield f"{path}.attributes = {header.attributes:#06x}"
        yield f"{path}.base_timestamp = {self._names.time(header.base_timestamp)}"
        yield f"{path}.max_timestamp = {self._names.time(header.max_timestamp)}"
        producer = self._names.name("P", header.producer_id) if header.producer_id >= 0 else "none"
        sequence = f"epoch {header.producer_epoch} sequence {header.base_sequence}"
        yield f"{path}.producer = {producer} {sequence}"
        try:
            for record in iterate_records(view, header, max_bytes=_MAX_BYTES):
                at = self._names.time(record.timestamp)
                pair = f"{_shown(record.key)}: {_shown(record.value)}"
                yield f"{path}.record {record.offset} at {at} {pair}"
                for name, value in record.headers:
                    yield f"{path}.record {record.offset} header {name} = {_shown(value)}"
        except KafkaError as error:
            yield f"{path} can't be read: {error.code.name}"


def is_generated(member_id: str) -> bool:
    """Return whether a broker generated a member id."""
    return bool(_MEMBER_ID.fullmatch(member_id) or _CONSUMER_MEMBER_ID.fullmatch(member_id))


def _shown(value: bytes | None) -> str:
    if value is None:
        return "null"
    text = value.decode(errors="backslashreplace")
    if not text.isprintable():
        return f"hex {value.hex()}"
    return f'"{text}"' if len(text) <= 40 else f'"{text[:20]}…" of {len(value)} bytes'


def _sortable(value: Any) -> Any:
    return "" if value is None else value


def _quoted(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
