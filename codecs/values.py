"""What a decoded message is: one small class per struct, with a slot per field of any version.

A struct's class serves all versions of its message: a field that a version lacks holds its default.
Values are compared and printed field by field. Below them stands what the classes and functions in
codecs/generated call.

    topic.name, topic.partitions[0].leader      fields are attributes
    topic.as_dict()                             dicts and lists all the way down
    TopicClass(name="t", partitions=[{...}])    nested mappings become structs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from wirebroker.codecs.errors import MalformedFrameError


class Struct:
    """A message, or a struct inside one; each message has its own classes derived from this."""

    __slots__ = ()
    FIELD_NAMES: ClassVar[tuple[str, ...]] = ()
    # What fields identify, such as topicName or groupId (`entityType` in Kafka's definitions).
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
    """Return `value` if it is of that class, else the struct made of a mapping.

    Raises:
        AssertionError: It is neither, or the mapping has a key that the message does not know.
    """
    if value.__class__ is struct_class:
        return value
    try:
        return struct_class(**value)  # looking at each name first took twice as long
    except TypeError:
        name = struct_class.__name__
        assert isinstance(value, Mapping), f"{name}: {value!r} is no mapping"
        fields = cast("Mapping[str, Any]", value)
        unknown = [each for each in fields if each not in struct_class.FIELD_NAMES]
        assert not unknown, f"{name} has no field {unknown}"
        raise


def as_list(values: Any) -> list[Any]:
    """Return a list of the values: themselves if they are one."""
    return values if values.__class__ is list else list(values)


# What a caller did not pass; None is a value.
ABSENT: Final = object()


def bad_length(path: str, length: int) -> MalformedFrameError:
    """Return the refusal of a length below 0, which is null where null isn't allowed."""
    what = "null" if length == -1 else f"a length of {length}"
    return MalformedFrameError(f"{path}: {what} is not allowed")


def beyond(path: str, length: int, remaining: int) -> MalformedFrameError:
    """Return the refusal of a length or count that exceeds the bytes that remain."""
    return MalformedFrameError(f"{path}: a length of {length} with {remaining} bytes left")


def unfit(path: str, what: str) -> ValueError:
    """Return what an encoder raises for a value that a field can't hold."""
    return ValueError(f"{path} {what}")
