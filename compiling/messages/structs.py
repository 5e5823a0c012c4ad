"""Generator of a message's struct classes, with a slot per field of any version.

class Topic(Struct):
__slots__ = ("name", "partitions")
FIELD_NAMES = __slots__
ENTITIES = {"name": "topicName"}
def __init__(self, *, name="", partitions=ABSENT): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiling.messages.source import default_source

if TYPE_CHECKING:
    from compiling.messages.schema import Field, StructSchema


def class_sources(body: StructSchema) -> list[str]:
    """Return the sources of all struct classes, nested structs first."""
    sources: dict[str, str] = {}
    _add(body, sources, {})
    return list(sources.values())


def _add(
    schema: StructSchema, sources: dict[str, str], added_structs: dict[str, tuple[str, ...]]
) -> None:
    names = tuple(field.name for field in schema.fields)
    if schema.name in added_structs:
        assert names == added_structs[schema.name], f"two different structs named {schema.name}"
        return
    added_structs[schema.name] = names
    for field in schema.fields:
        if field.struct is not None:
            _add(field.struct, sources, added_structs)
    sources[schema.name] = _class_source(schema, names)


def _class_source(schema: StructSchema, names: tuple[str, ...]) -> str:
    star = "*, " if names else ""
    entities = {field.name: field.entity for field in schema.fields if field.entity}
    parameters = ", ".join(map(_parameter, schema.fields))
    return "\n".join(
        [
            f"class {schema.name}(Struct):",
            f"    __slots__ = {names!r}",
            "    FIELD_NAMES = __slots__",
            *([f"    ENTITIES = {entities!r}"] if entities else []),
            f"    def __init__(self, {star}{parameters}):",
            *(map(_assignment, schema.fields) if names else ["        pass"]),
        ]
    )


def _is_mutable(field: Field) -> bool:
    return field.is_array or field.struct is not None


def _parameter(field: Field) -> str:
    assert field.name.isidentifier(), field.name
    return f"{field.name}={'ABSENT' if _is_mutable(field) else default_source(field)}"


def _assignment(field: Field) -> str:
    name = value = field.name
    if field.struct is not None and field.is_array:
        value = f"[as_struct({field.struct.name}, item) for item in {name}]"
    elif field.struct is not None:
        value = f"as_struct({field.struct.name}, {name})"
    elif field.is_array:
        value = f"as_list({name})"
    if _is_mutable(field):
        value_or_none = f"None if {name} is None else {value}"
        value = f"{default_source(field)} if {name} is ABSENT else {value_or_none}"
    return f"        self.{name} = {value}"
