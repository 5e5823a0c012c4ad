"""The topics that a request names (source: `entityType` in Kafka's message definitions)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.values import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOPIC_NAME: Final = "topicName"
_TOPIC_ID: Final = "topic_id"
# Type and name of a resource. A topic has type 2 in configs and ACLs.
_RESOURCES: Final = {
    "resource_type": "resource_name",
    "resource_type_filter": "resource_name_filter",
}
_TOPIC_TYPE: Final = 2


def names_topic(body: Struct, topic: str, topic_id: bytes | None) -> bool:
    """Return whether a request names a topic, which has no id if it does not exist."""
    return any(_is_named(struct, topic, topic_id) for struct in _structs(body))


def add_topic_names(body: Struct, names: Mapping[bytes, str]) -> None:
    """Add the name to each topic that a request names only by id."""
    for struct in _structs(body):
        name = names.get(getattr(struct, _TOPIC_ID, b""))
        for field, entity in struct.ENTITIES.items() if name else ():
            if entity == _TOPIC_NAME and not getattr(struct, field):
                setattr(struct, field, name)


def _structs(value: Any) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        for name in value.FIELD_NAMES:
            yield from _structs(getattr(value, name))
    elif value.__class__ is list and value and isinstance(value[0], Struct):
        for struct in value:
            yield from _structs(struct)


def _is_named(struct: Struct, topic: str, topic_id: bytes | None) -> bool:
    if topic_id is not None and getattr(struct, _TOPIC_ID, None) == topic_id:
        return True
    for field, entity in struct.ENTITIES.items():
        value = getattr(struct, field)
        if entity == _TOPIC_NAME and (
            topic in value if value.__class__ is list else value == topic
        ):
            return True
    return any(
        getattr(struct, kind, None) == _TOPIC_TYPE and getattr(struct, name) == topic
        for kind, name in _RESOURCES.items()
    )
