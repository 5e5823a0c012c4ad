"""What a decoded message is: one small class per struct, with a slot per field of any version.

A struct's class is made once per message and serves all its versions: a field that a version lacks
holds its default. Values are compared and printed field by field.

    topic.name, topic.partitions[0].leader      fields are attributes
    topic.as_dict()                             dicts and lists all the way down
    TopicClass(name="t", partitions=[{...}])    nested mappings become structs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

if TYPE_CHECKING:
    from wirebroker.codecs.schema import Field, StructSchema


class Struct:
    """A message, or a struct inside one; each message has its own classes derived from this."""

    __slots__ = ()
    FIELD_NAMES: ClassVar[tuple[str, ...]] = ()

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
    assert isinstance(value, Mapping), f"{struct_class.__name__}: {value!r} is no mapping"
    fields = cast("Mapping[str, Any]", value)
    unknown = [name for name in fields if name not in struct_class.FIELD_NAMES]
    assert not unknown, f"{struct_class.__name__} has no field {unknown}"
    return struct_class(**fields)


def _as_list(values: Any) -> list[Any]:
    return values if values.__class__ is list else list(values)


# What a caller did not pass; None is a value.
_ABSENT: Final = object()


class StructClasses:
    """The classes of one message: one for each of its structs.

    Attributes:
        by_name: The class of each struct, by the struct's name in the schema.
    """

    __slots__ = ("by_name",)

    def __init__(self, body: StructSchema) -> None:
        self.by_name: dict[str, type[Struct]] = {}
        self._add(body)

    def _add(self, schema: StructSchema) -> None:
        known = self.by_name.get(schema.name)
        names = tuple(field.name for field in schema.fields)
        if known is not None:
            assert names == known.FIELD_NAMES, f"two different structs named {schema.name}"
            return
        for field in schema.fields:
            if field.struct is not None:
                self._add(field.struct)
        namespace: dict[str, Any] = {
            "absent": _ABSENT,
            "as_list": _as_list,
            "as_struct": as_struct,
            **self.by_name,
        }
        # The source is made of a schema's names and defaults, never of a peer's bytes.
        exec(_initializer_source(schema), namespace)  # noqa: S102
        self.by_name[schema.name] = type(
            schema.name,
            (Struct,),
            {
                "__slots__": names,
                "FIELD_NAMES": names,
                "__init__": namespace["__init__"],
                "__doc__": f"{schema.name}, a struct of Kafka's protocol.",
            },
        )


def default_source(field: Field) -> str:
    """Return the expression that makes a field's default; a fresh object if it is mutable."""
    if field.default is None:
        return "None"
    if field.is_array:
        return "[]"
    if field.struct is not None:
        return f"{field.struct.name}()"
    return repr(field.default)


def _initializer_source(schema: StructSchema) -> str:
    """Return the source of a struct's __init__: keyword arguments only, each with its default."""
    parameters: list[str] = []
    lines: list[str] = []
    for field in schema.fields:
        assert field.name.isidentifier(), field.name
        name = field.name
        is_mutable = field.is_array or field.struct is not None
        parameters.append(f"{name}={'absent' if is_mutable else default_source(field)}")
        value = name
        if field.struct is not None and field.is_array:
            value = f"[as_struct({field.struct.name}, item) for item in {name}]"
        elif field.struct is not None:
            value = f"as_struct({field.struct.name}, {name})"
        elif field.is_array:
            value = f"as_list({name})"
        if is_mutable:
            given = f"None if {name} is None else {value}"
            value = f"{default_source(field)} if {name} is absent else {given}"
        lines.append(f"    self.{name} = {value}")
    star = "*, " if parameters else ""
    head = f"def __init__(self, {star}{', '.join(parameters)}):"
    return "\n".join([head, *(lines or ["    pass"])])
