"""Decoded messages: a small class per struct, with a slot for each field of any version.

    topic.name, topic.partitions[0].leader
    topic.as_dict()                             dicts and lists all the way down
    TopicClass(name="t", partitions=[{...}])    nested mappings become structs

A field that a version lacks holds its default. The functions serve codecs/generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from wirebroker.codecs.errors import MalformedFrameError


class Struct:
    """Base class of messages and the structs inside them."""

    __slots__ = ()
    FIELD_NAMES: ClassVar[tuple[str, ...]] = ()
    # Entity types of fields, such as topicName (`entityType` in Kafka's definitions).
    ENTITIES: ClassVar[Mapping[str, str]] = {}

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as a dict, nested structs included."""
        return {name: _plain(getattr(self, name)) for name in self.FIELD_NAMES}

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELD_NAMES)

    __hash__ = None  # type: ignore[assignment]  # fields change, as a list's elements do

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELD_NAMES)
        return f"{type(self).__name__}({fields})"


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return value.as_dict()
    if value.__class__ is list:
        return [_plain(element) for element in value]
    return value


def as_struct(struct_class: type[Struct], value: Any) -> Any:
    """Return `value` if it is of that class, else a struct made from the mapping.

    Raises:
        AssertionError: It is neither, or the mapping has an unknown key.
    """
    if value.__class__ is struct_class:
        return value
    try:
        return struct_class(**value)  # a check of each name first took twice as long
    except TypeError:
        name = struct_class.__name__
        assert isinstance(value, Mapping), f"{name}: {value!r} is not a mapping"
        fields = cast("Mapping[str, Any]", value)
        unknown = [each for each in fields if each not in struct_class.FIELD_NAMES]
        assert not unknown, f"{name} has no field {unknown}"
        raise


def as_list(values: Any) -> list[Any]:
    """Return the values as a list; a list is returned unchanged."""
    return values if values.__class__ is list else list(values)


# A missing argument, as opposed to None.
ABSENT: Final = object()


def bad_length(path: str, length: int) -> MalformedFrameError:
    """Return the error for a negative length, including a forbidden null."""
    what = "null" if length == -1 else f"a length of {length}"
    return MalformedFrameError(f"{path}: {what} is not allowed")


def beyond(path: str, length: int, remaining: int) -> MalformedFrameError:
    """Return the error for a length or count that exceeds the remaining bytes."""
    return MalformedFrameError(f"{path}: a length of {length} with {remaining} bytes left")


def unfit(path: str, what: str) -> ValueError:
    """Return the error for a value that a field cannot hold."""
    return ValueError(f"{path} {what}")
