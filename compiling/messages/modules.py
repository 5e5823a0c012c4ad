"""Generator of one message's module: its structs, and a function per version and direction.

Versions with identical functions share one, named after the lowest version. MessageModule in
codecs/message.py is the module's interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiling.messages.decoders import decoder_source
from compiling.messages.encoders import encoder_source
from compiling.messages.schema import snake_case
from compiling.messages.structs import class_sources

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiling.messages.schema import MessageSchema, StructSchema

_HEAD: Final = '''\
"""{name}; made by compiling/messages, which is where to change it."""
from struct import Struct as Layout, pack, unpack_from
from wirebroker.codecs.errors import MalformedFrameError as malformed
from wirebroker.codecs.primitives import MAX_TAGGED_FIELDS, read_uvarint, uvarint
from wirebroker.codecs.values import ABSENT, Struct, as_list, as_struct, bad_length, beyond, unfit
new = object.__new__
'''


def module_name(schema: MessageSchema) -> str:
    """Return the name of a message's module: CreateTopicsRequest -> create_topics_request."""
    return snake_case(schema.name)


def module_source(schema: MessageSchema) -> str:
    """Return a message module's text."""
    constants: dict[str, str] = {}
    decoders = _functions(schema, constants, decoder_source, "decode", "(data, pos, left)")
    encoders = _functions(schema, constants, encoder_source, "encode", "(value, errors)")
    first, last = schema.versions.first, schema.versions.last
    parts = [
        _HEAD.format(name=schema.name),
        *class_sources(schema.body),
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
