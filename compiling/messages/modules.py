"""Generator of one message's module (MessageModule in codecs/message.py).

Versions with identical functions share one, named after the lowest version. A struct's class has a
slot per field of any version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiling.messages.decoders import decoder_source
from compiling.messages.encoders import encoder_source
from compiling.messages.schema import snake_case
from compiling.messages.source import default_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiling.messages.schema import Field, MessageSchema, StructSchema

_HEAD: Final = '''\
"""{name}; made by compiling/messages, which is where to change it."""
from struct import Struct as Layout, pack, unpack_from
from wirebroker.codecs.errors import MalformedFrameError as malformed
from wirebroker.codecs.primitives import MAX_TAGGED_FIELDS, read_uvarint, uvarint
from wirebroker.codecs.values import ABSENT, Struct, as_list, as_struct, bad_length, beyond, unfit
new = object.__new__
'''


def module_name(schema: MessageSchema) -> str:
    """Return a message module's name: CreateTopicsRequest -> create_topics_request."""
    return snake_case(schema.name)


def module_source(schema: MessageSchema) -> str:
    """Return a message module's text."""
    constants: dict[str, str] = {}
    decoders = _functions(schema, constants, decoder_source, "decode", "(data, pos, left)")
    encoders = _functions(schema, constants, encoder_source, "encode", "(value, errors)")
    first, last = schema.versions.first, schema.versions.last
    parts = [
        _HEAD.format(name=schema.name),
        *_class_sources(schema.body),
        *(f"{name} = {expression}" for name, expression in sorted(constants.items())),
        *decoders.values(),
        *encoders.values(),
        f"NAME = {schema.name!r}",
        f"NUMBER = {schema.number}",
        f"VERSIONS = range({first}, {last + 1})",
        f"HAS_RECORDS = {_has_records(schema.body)}",
        f"STRUCT = {schema.body.name}",
        f"DECODERS = {_table(decoders)}",
        f"ENCODERS = {_table(encoders)}",
    ]
    return "\n".join(parts) + "\n"


def _has_records(schema: StructSchema) -> bool:
    return any(
        field.type == "records" or (field.struct is not None and _has_records(field.struct))
        for field in schema.fields
    )


def _functions(
    schema: MessageSchema,
    constants: dict[str, str],
    body_of: Callable[[MessageSchema, dict[str, str], int], str],
    stem: str,
    parameters: str,
) -> dict[int, str]:
    names: dict[str, str] = {}  # body -> function name
    sources: dict[int, str] = {}
    for version in range(schema.versions.first, schema.versions.last + 1):
        body = body_of(schema, constants, version)
        if body in names:
            sources[version] = f"{stem}_{version} = {names[body]}"
        else:
            names[body] = f"{stem}_{version}"
            sources[version] = f"def {stem}_{version}{parameters}:\n{body}"
    return sources


def _table(functions: dict[int, str]) -> str:
    stems = {version: source.split("(")[0].split()[-1] for version, source in functions.items()}
    return "{" + ", ".join(f"{version}: {name}" for version, name in stems.items()) + "}"


def _class_sources(body: StructSchema) -> list[str]:
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
