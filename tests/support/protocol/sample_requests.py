"""Requests of every kind and version about existing data, made from the protocol's schemas.

    sample = SampleRequests(topic_id)
    body = sample.body(ApiKey.OFFSET_FETCH, 8)       # of topic t, group g, transactional id x
    for path in arrays_in(body): ...                 # where it has arrays, and how to repeat them

Fields are filled by name, because a name means the same in all requests; unknown fields keep their
defaults. Arrays have one element.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.support.protocol.message_schemas import schema_of
from wirebroker.codecs.messages import request_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiling.messages.schema import Field, StructSchema
    from wirebroker.codecs.api_keys import ApiKey

TOPIC, GROUP, TRANSACTIONAL_ID = "t", "g", "x"
SHARE_GROUP = "s"

_BY_NAME: dict[str, Any] = {
    "topic": TOPIC,
    "topics": TOPIC,  # for arrays of topic names
    "topic_names": TOPIC,
    "subscribed_topic_names": TOPIC,
    "group_id": GROUP,
    "groups": GROUP,
    "groups_names": GROUP,
    "coordinator_keys": GROUP,
    "key": GROUP,
    "transactional_id": TRANSACTIONAL_ID,
    "transactional_ids": TRANSACTIONAL_ID,
    "resource_name": TOPIC,
    "resource_name_filter": TOPIC,
    "resource_type": 2,
    "resource_type_filter": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
    "timeout_ms": 1000,
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "replica_id": -1,
    "timestamp": -1,
    "current_leader_epoch": -1,
    "member_id": "",
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "session_epoch": -1,
    "protocol_type": "consumer",
    "producer_id": -1,
    "producer_epoch": -1,
    "acks": 1,
    "response_partition_limit": 2000,
}
# Values of `name` fields by struct; in other structs it is the topic's name.
_NAME_OF_STRUCT: dict[str, str] = {
    "JoinGroupRequestProtocol": "range",
    "CreatableTopicConfig": "retention.ms",
    "AlterableConfig": "retention.ms",
    "UserName": "alice",
    "FeatureUpdateKey": "metadata.version",
    "ScramCredentialDeletion": "alice",
    "ScramCredentialUpsertion": "alice",
}
# Requests about a share group.
_OF_SHARE_GROUPS: dict[str, str] = {
    "group_id": SHARE_GROUP,
    "group_ids": SHARE_GROUP,
    "member_id": "m",
    "topic_name": TOPIC,
}


class SampleRequests:
    def __init__(self, topic_id: bytes) -> None:
        self._topic_id = topic_id

    def body(self, key: ApiKey, version: int, *, names_all: bool = False) -> dict[str, Any]:
        """Return a request.

        Args:
            key: Its API key.
            version: Its version.
            names_all: Whether nullable arrays inside its elements are null, which means "all".
        """
        schema = schema_of(request_message(key)).body
        return {
            field.name: self._value(schema, field, version, names_all=names_all)
            for field in fields_of(schema, version)
        }

    def _struct(self, schema: StructSchema, version: int, *, names_all: bool) -> dict[str, Any]:
        return {
            field.name: None
            if names_all and field.is_array and version in field.nullable_versions
            else self._value(schema, field, version, names_all=names_all)
            for field in fields_of(schema, version)
        }

    def _value(self, schema: StructSchema, field: Field, version: int, *, names_all: bool) -> Any:
        if field.struct is not None:
            value: Any = self._struct(field.struct, version, names_all=names_all)
        elif field.type == "uuid":
            value = self._topic_id
        elif field.name == "name":
            value = _NAME_OF_STRUCT.get(schema.name, TOPIC)
        elif field.type == "string" and "ShareGroup" in schema.name:
            value = (_BY_NAME | _OF_SHARE_GROUPS).get(field.name, "")
        elif field.type == "string":
            value = _BY_NAME.get(field.name, "")
        elif field.type in {"bytes", "records"}:
            value = b""
        else:
            value = _BY_NAME.get(field.name, 0)
        return [value] if field.is_array else value


def fields_of(schema: StructSchema, version: int) -> list[Field]:
    return [
        field
        for field in schema.fields
        if version in field.versions and version not in field.tagged_versions
    ]


def arrays_in(body: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of a request's arrays, outer arrays first."""
    fields = body.items() if isinstance(body, dict) else ()
    for name, value in fields:
        if isinstance(value, list):
            yield (*path, name)
            if value:
                yield from arrays_in(value[0], (*path, name, 0))
        else:
            yield from arrays_in(value, (*path, name))


def at(body: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        body = body[step]
    return body


def with_elements(body: dict[str, Any], path: tuple[str | int, ...], elements: list[Any]) -> Any:
    changed = copy.deepcopy(body)
    at(changed, path[:-1])[path[-1]] = elements
    return changed
