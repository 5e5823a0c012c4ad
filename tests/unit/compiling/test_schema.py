"""Message definitions in both notations: Kafka's JSON and our own tables."""

from __future__ import annotations

import pytest

from compiling.messages.schema import (
    NO_VERSIONS,
    SchemaError,
    Versions,
    parse_json_schema,
    parse_table,
    snake_case,
)
from tests.support.protocol.message_schemas import message_of

JSON = """
// A licence.
{
  "apiKey": 99, "type": "request", "name": "ThingRequest",
  // Version 1 adds more.
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    { "name": "Address", "type": "string", "versions": "0+", "default": "http://x // y" },
    { "name": "Limit", "type": "int32", "versions": "1", "default": "0x7fffffff" }, // unsigned
    { "name": "Flag", "type": "bool", "versions": "0+", "default": "true" },
    { "name": "KRaftVersion", "type": "uint32", "versions": "0+" },
    { "name": "Things", "type": "[]Thing", "versions": "0+", "nullableVersions": "1+" },
    { "name": "Note", "type": "string", "versions": "2+", "taggedVersions": "2+", "tag": 3,
      "nullableVersions": "2+", "default": "null", "ignorable": true }
  ],
  "commonStructs": [
    { "name": "Thing", "versions": "0+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "0+" },
      { "name": "Weight", "type": "float64", "versions": "0+", "default": "1.5" } ] }
  ]
}
"""

TABLE = """
# A comment.
ThingRecord 99 0-2
  name string default=a
  limits []int32 1+
  parts []Part 1-1 ignorable
    id uuid
    inner Inner null=0+
      size int8
  note string 2+ null=2+ tag=3 default=null
  end bool

EmptyRecord 100 0
"""


def test_kafkas_json_with_comments_is_understood() -> None:
    schema = parse_json_schema(JSON)
    assert (schema.name, schema.number) == ("ThingRequest", 99)
    assert (schema.versions, schema.flexible_versions) == (Versions(0, 2), Versions(2, 32767))
    fields = {field.name: field for field in schema.body.fields}
    assert fields["address"].default == "http://x // y"
    assert fields["limit"].default == 0x7FFFFFFF
    assert fields["limit"].versions == Versions(1, 1)
    assert fields["flag"].default is True
    assert fields["k_raft_version"].type == "uint32"
    assert fields["things"].struct is not None
    assert [field.name for field in fields["things"].struct.fields] == ["id", "weight"]
    assert fields["note"].default is None
    assert fields["note"].is_ignorable
    assert (fields["note"].tag, fields["note"].tagged_versions.first) == (3, 2)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_json_defines_can_be_written_and_read(version: int) -> None:
    message = message_of(parse_json_schema(JSON))
    value = message.struct_class(
        k_raft_version=2**32 - 1,
        things=[{"id": b"x" * 16}, {"weight": -2.5}],
        note="noted" if version == 2 else None,
    )
    assert message.decode(version, message.encode(version, value)) == value


def test_a_table_is_understood() -> None:
    record, empty = parse_table(TABLE)
    assert (record.name, record.number, record.versions) == ("ThingRecord", 99, Versions(0, 2))
    name, limits, parts, note, end = record.body.fields
    assert (name.default, limits.is_array, limits.versions.first) == ("a", True, 1)
    assert (parts.versions, parts.is_ignorable) == (Versions(1, 1), True)
    assert parts.struct is not None
    inner = parts.struct.fields[1]
    assert inner.struct is not None
    assert [field.name for field in inner.struct.fields] == ["size"]
    assert (note.tag, note.tagged_versions.first, note.default) == (3, 2, None)
    assert end.tagged_versions == NO_VERSIONS
    assert empty.body.fields == ()


def test_table_sets_flexible_versions_and_reuses_a_struct() -> None:
    (schema,) = parse_table(
        "ThingRequest 9 1-3 flexible=2+\n"
        "  # The first time.\n"
        "  first Part null=0+\n"
        "    id int8\n"
        "  others []Part\n"
    )
    assert (schema.versions, schema.flexible_versions) == (Versions(1, 3), Versions(2, 32767))
    first, others = schema.body.fields
    assert (first.is_array, others.is_array) == (False, True)
    assert first.struct == others.struct


def test_malformed_message_header_is_refused() -> None:
    with pytest.raises(SchemaError, match="flexibel"):
        parse_table("ThingRequest 9 1-3 flexibel=2+")


def test_what_a_table_defines_can_be_written_and_read() -> None:
    message = message_of(parse_table(TABLE)[0])
    value = message.struct_class(parts=[{"inner": {"size": 3}}, {"inner": None}], limits=(1, 2))
    assert message.decode(1, message.encode(1, value)) == value
    assert value.limits == [1, 2]
    assert message.decode(2, message.encode(2, {"note": "n", "limits": [5]})).note == "n"


def test_default_of_json_null_is_empty_as_in_kafka() -> None:
    text = JSON.replace('"nullableVersions": "1+" }', '"nullableVersions": "1+", "default": null }')
    assert text != JSON
    fields = {field.name: field for field in parse_json_schema(text).body.fields}
    assert fields["things"].default == ""


@pytest.mark.parametrize(
    ("default", "null", "empty"),
    [
        # One tagged field: its tag, its length, the mark of null.
        ("", b"\x01\x00\x01\x00", b"\x00"),
        ("default=null", b"\x00", b"\x01\x00\x03\x01\x00\x00"),
    ],
)
def test_tagged_struct_may_be_null(default: str, null: bytes, empty: bytes) -> None:
    (schema,) = parse_table(f"ThingRecord 99 0\n  part Part null=0+ tag=0 {default}\n    size int8")
    message = message_of(schema)
    for part, encoded in ((None, null), ({"size": 0}, empty)):
        value = message.struct_class(part=part)
        assert message.encode(0, value) == encoded
        assert message.decode(0, encoded) == value
    full = message.encode(0, {"part": {"size": 5}})
    assert full == b"\x01\x00\x03\x01\x05\x00"
    assert message.decode(0, full).part.size == 5


@pytest.mark.parametrize(
    "line", ["x int33", "x Part", "x int8 tg=3", "x int8 always", "x []int8 default=3"]
)
def test_a_table_with_a_slip_is_refused(line: str) -> None:
    with pytest.raises(SchemaError):
        parse_table(f"ThingRecord 99 0\n  {line}\n")


def test_flexible_versions_of_single_fields_are_refused() -> None:
    text = JSON.replace('"tag": 3', '"tag": 3, "flexibleVersions": "none"')
    with pytest.raises(SchemaError, match="flexible"):
        parse_json_schema(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TopicId", "topic_id"),
        ("IsrNodes", "isr_nodes"),
        ("KRaftVersion", "k_raft_version"),
        ("ISR", "isr"),
        ("ThrottleTimeMs", "throttle_time_ms"),
        ("already_snake", "already_snake"),
    ],
)
def test_names_become_snake_case(name: str, expected: str) -> None:
    assert snake_case(name) == expected
