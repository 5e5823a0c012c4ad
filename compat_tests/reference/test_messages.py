"""Messages and records have the fields of Apache Kafka's definitions in every version."""

from __future__ import annotations

import re
import zipfile
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from compiling.messages.definitions import all_schemas
from compiling.messages.schema import parse_json_schema
from tests.support.tools import tools
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiling.messages.schema import Field, MessageSchema, StructSchema

pytestmark = pytest.mark.java

_FOLDERS = ("common/message/", "common/metadata/")
# A message's own name precedes those of its fields.
_NAME = re.compile(r'"name":\s*"(\w+)"')
OURS = {schema.name: schema for schema in all_schemas()}


@cache
def kafkas() -> dict[str, MessageSchema]:
    """Return the definitions in Kafka's jars that wirebroker also has."""
    return {name: parse_json_schema(text) for name, text in _texts() if name in OURS}


def _texts() -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the definitions in Kafka's jars."""
    for jar in sorted(tools.kafka_jars().glob(f"kafka-*-{tools.KAFKA_VERSION}.jar")):
        with zipfile.ZipFile(jar) as archive:
            for path in archive.namelist():
                if path.startswith(_FOLDERS) and path.endswith(".json"):
                    text = archive.read(path).decode()
                    yield _NAME.findall(text)[0], text


def coordinator_values() -> set[str]:
    """Return the names of the definitions of values in coordinators' logs."""
    return {name for name, text in _texts() if '"coordinator-value"' in text}


def shape(struct: StructSchema, version: int, *, is_named: bool) -> list[Any]:
    return [
        _shape_of(field, version, is_named=is_named)
        for field in struct.fields
        if version in field.versions
    ]


def _shape_of(field: Field, version: int, *, is_named: bool) -> Any:
    type_ = field.type if field.struct is None else shape(field.struct, version, is_named=is_named)
    is_nullable = version in field.nullable_versions
    is_tagged = version in field.tagged_versions
    # A tagged field with its default is not written.
    tag = (field.tag, field.default) if is_tagged else None
    return (field.name if is_named else "", type_, field.is_array, is_nullable, tag)


def test_all_kafka_messages_are_defined() -> None:
    names = kafkas()
    keys = {schema.number for name, schema in names.items() if name.endswith("Request")}
    assert keys >= {int(key) for key in SPOKEN_VERSIONS if tools.IS_REFERENCE or key < 93}
    assert {OURS[name].number for name in names if name.endswith("Response")} >= keys
    if tools.IS_REFERENCE:
        names_of_apis = {schema.name for schema in OURS.values() if schema.number in set(ApiKey)}
        assert {name for name in names_of_apis if name.endswith("Request")} <= names.keys()


def test_all_values_of_coordinators_are_defined() -> None:
    # Version 0 of OffsetCommitValue is the same.
    assert coordinator_values() - OURS.keys() == {"LegacyOffsetCommitValue"}


@pytest.mark.parametrize("name", sorted(OURS))
def test_message_fields_match_kafka_in_every_version(name: str) -> None:
    kafka_schema, wirebroker_schema = kafkas().get(name), OURS[name]
    if kafka_schema is None:
        assert not tools.IS_REFERENCE or not name.endswith(
            ("Request", "Response", "Record", "Value")
        )
        return
    assert kafka_schema.number == wirebroker_schema.number
    assert (wirebroker_schema.versions.first, wirebroker_schema.versions.last) == (
        (kafka_schema.versions.first, kafka_schema.versions.last)
        if tools.IS_REFERENCE
        else (
            kafka_schema.versions.first,
            max(kafka_schema.versions.last, wirebroker_schema.versions.last),
        )
    )
    for version in range(kafka_schema.versions.first, kafka_schema.versions.last + 1):
        is_flexible = version in kafka_schema.flexible_versions
        assert is_flexible == (version in wirebroker_schema.flexible_versions), version
        expected = shape(kafka_schema.body, version, is_named=tools.IS_REFERENCE)
        actual = shape(wirebroker_schema.body, version, is_named=tools.IS_REFERENCE)
        if not tools.IS_REFERENCE:
            actual = [field for field in actual if field in expected or field[-1] is None]
        assert actual == expected, version
