"""The model of a message, its fields by version, and the parsers of its two notations.

The notations are Kafka's JSON, with comments, and our own tables (compiling/tables):

    PartitionRecord 3 0-2
      partition_id int32 default=-1
      directories []uuid 1+
      last_known_elr []int32 2+ null=2+ tag=2 default=null

A table's head is name, number (API key or record type) and valid versions, then `flexible=`
versions, by default all. A field is name, type, versions (default `0+`), then `null=` for nullable
versions, `tag=`, `default=`, `entity=` for what it identifies, `ignorable`. Indentation opens a
nested struct; later uses need only its name.

Source: Kafka's README of its message definitions (clients/src/main/resources/common/message).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Fixed lengths, in bytes.
FIXED_BYTES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
VARIABLE_TYPES: Final = frozenset({"string", "bytes", "records"})

_HIGHEST_VERSION: Final = 0x7FFF
_COMMENT_OR_STRING: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class SchemaError(ValueError):
    """A message definition that the parser does not support."""


@dataclass(slots=True, frozen=True)
class Versions:
    """A range of versions, both ends included; it may be empty."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


NO_VERSIONS: Final = Versions(0, -1)
ALL_VERSIONS: Final = Versions(0, _HIGHEST_VERSION)


@dataclass(slots=True, frozen=True)
class Field:
    """One field of a struct."""

    name: str
    # Type or struct name; for an array, of its elements.
    type: str
    is_array: bool
    struct: StructSchema | None
    versions: Versions
    nullable_versions: Versions
    tagged_versions: Versions
    tag: int
    # None, bool, int, float, str or bytes; for arrays and structs None or "" (empty).
    default: object
    # May be omitted silently when encoding a version that lacks it.
    is_ignorable: bool
    # What a value identifies, such as topicName. Digests omit it.
    entity: str = field(default="", repr=False)


@dataclass(slots=True, frozen=True)
class StructSchema:
    """A struct's fields of all versions, in wire order."""

    name: str
    fields: tuple[Field, ...]


@dataclass(slots=True, frozen=True)
class MessageSchema:
    """One message: its outermost struct and its versions."""

    name: str
    # API key, record type, or -1.
    number: int
    versions: Versions
    flexible_versions: Versions
    body: StructSchema


def parse_json_schema(text: str) -> MessageSchema:
    """Read a message definition in Kafka's JSON.

    Raises:
        SchemaError: A type or a default is unknown.
    """
    without_comments = _COMMENT_OR_STRING.sub(lambda match: match.group(1) or "", text)
    definition: dict[str, Any] = json.loads(without_comments)
    shared: dict[str, list[dict[str, Any]]] = {
        item["name"]: item["fields"] for item in definition.get("commonStructs", ())
    }
    name: str = definition["name"]
    return MessageSchema(
        name=name,
        number=definition.get("apiKey", -1),
        versions=_versions(definition["validVersions"]),
        flexible_versions=_versions(definition.get("flexibleVersions", "none")),
        body=_struct(name, definition["fields"], shared),
    )


def parse_table(text: str) -> list[MessageSchema]:
    """Read messages in our table notation.

    Raises:
        SchemaError: A line is malformed.
    """
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    return [_table_message(lines, start, end) for start, end in _blocks(lines, 0, len(lines))]


def _table_message(lines: list[str], start: int, end: int) -> MessageSchema:
    name, number, versions, *words = lines[start].split()
    flexible = ALL_VERSIONS
    for word in words:
        if not word.startswith("flexible="):
            raise SchemaError(f"not understood: {word!r} in {lines[start]!r}")
        flexible = _versions(word.removeprefix("flexible="))
    shared: dict[str, list[dict[str, Any]]] = {}
    fields = _table_fields(lines, start + 1, end, shared)
    return MessageSchema(
        name=name,
        number=int(number),
        versions=_versions(versions),
        flexible_versions=flexible,
        body=_struct(name, fields, shared),
    )


def snake_case(name: str) -> str:
    """Convert a name from Kafka's JSON: IsrNodes -> isr_nodes, KRaftVersion -> k_raft_version."""
    return _WORD_START.sub("_", name).lower()


def _versions(text: str | None) -> Versions:
    if text is None or text == "none":
        return NO_VERSIONS
    first, separator, last = text.partition("-")
    if separator:
        return Versions(int(first), int(last))
    if text.endswith("+"):
        return Versions(int(text[:-1]), _HIGHEST_VERSION)
    return Versions(int(text), int(text))


def _struct(
    name: str, fields: list[dict[str, Any]], shared: Mapping[str, list[dict[str, Any]]]
) -> StructSchema:
    return StructSchema(name, tuple(_field(definition, shared) for definition in fields))


def _field(definition: Mapping[str, Any], shared: Mapping[str, list[dict[str, Any]]]) -> Field:
    if "flexibleVersions" in definition:
        raise SchemaError(f"{definition['name']}: only message headers have flexible fields")
    type_name: str = definition["type"]
    is_array = type_name.startswith("[]")
    element = type_name.removeprefix("[]")
    struct = None
    if element not in FIXED_BYTES and element not in VARIABLE_TYPES:
        nested = definition.get("fields") or shared.get(element)
        if nested is None:
            raise SchemaError(f"{definition['name']}: unknown type {type_name}")
        struct = _struct(element, nested, shared)
    tagged = _versions(definition.get("taggedVersions"))
    return Field(
        name=snake_case(definition["name"]),
        type=element,
        is_array=is_array,
        struct=struct,
        versions=_versions(definition["versions"]) if "versions" in definition else tagged,
        nullable_versions=_versions(definition.get("nullableVersions")),
        tagged_versions=tagged,
        tag=definition.get("tag", -1),
        default=_default(element, definition, is_struct=is_array or struct is not None),
        is_ignorable=definition.get("ignorable", False),
        entity=definition.get("entityType", ""),
    )


def _default(element: str, definition: Mapping[str, Any], *, is_struct: bool) -> object:
    # Kafka's generator ignores a default of JSON's null: only the text "null" is null.
    written = "" if definition.get("default") is None else definition["default"]
    if written == "null" or element == "records":
        return None
    if is_struct:
        if written != "":
            raise SchemaError(f"{definition['name']}: unknown default {written}")
        return ""
    text = str(written)
    match element:
        case "bool":
            value: object = text.lower() == "true"
        case "float64":
            value = float(text or 0)
        case "string":
            value = text
        case "bytes":
            value = text.encode()
        case "uuid":
            value = bytes(16)
        case _:
            value = int(text or "0", 0)
    return value


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(lines: list[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block, a line with the more indented ones after it."""
    while start < end:
        stop = start + 1
        while stop < end and _indent(lines[stop]) > _indent(lines[start]):
            stop += 1
        yield start, stop
        start = stop


def _table_fields(
    lines: list[str], start: int, end: int, shared: dict[str, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return fields as Kafka's JSON writes them; record each struct's fields in `shared`."""
    fields: list[dict[str, Any]] = []
    for first, last in _blocks(lines, start, end):
        name, type_name, *words = lines[first].split()
        definition: dict[str, Any] = {"name": name, "type": type_name, "versions": "0+"}
        for word in words:
            match word.partition("="):
                case ("null", "=", versions):
                    definition["nullableVersions"] = versions
                case ("tag", "=", tag):
                    definition["tag"] = int(tag)
                case ("entity", "=", entity):
                    definition["entityType"] = entity
                case ("default", "=", default):
                    definition["default"] = default
                case ("ignorable", "", ""):
                    definition["ignorable"] = True
                case (versions, "", "") if versions[0].isdigit():
                    definition["versions"] = versions
                case _:
                    raise SchemaError(f"not understood: {word!r} in {lines[first]!r}")
        if "tag" in definition:
            definition["taggedVersions"] = definition["versions"]
        if last > first + 1:
            nested = _table_fields(lines, first + 1, last, shared)
            shared[type_name.removeprefix("[]")] = definition["fields"] = nested
        fields.append(definition)
    return fields
