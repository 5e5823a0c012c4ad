"""A batch header's layout, compared with C and the documents."""

from __future__ import annotations

import re
from struct import Struct

import pytest

from tests.support.harness.project_files import ROOT
from wirebroker.codecs.records import layout
from wirebroker.codecs.records.batch import BatchHeader

POSITIONS = {
    "base_offset": layout.BASE_OFFSET_AT,
    "length": layout.LENGTH_AT,
    "leader_epoch": layout.LEADER_EPOCH_AT,
    "magic": layout.MAGIC_AT,
    "crc": layout.CRC_AT,
    "attributes": layout.ATTRIBUTES_AT,
    "last_offset_delta": layout.LAST_OFFSET_DELTA_AT,
    "base_timestamp": layout.BASE_TIMESTAMP_AT,
    "max_timestamp": layout.MAX_TIMESTAMP_AT,
    "producer_id": layout.PRODUCER_ID_AT,
    "producer_epoch": layout.PRODUCER_EPOCH_AT,
    "base_sequence": layout.BASE_SEQUENCE_AT,
    "record_count": layout.RECORD_COUNT_AT,
}
C_SOURCES = ("codecs/_hot.c", "codecs/_record_columns.h", "codecs/_record_walk.h")
# A header in which every byte differs.
BYTES = bytes(range(layout.HEADER_BYTES))
FIELDS = dict(zip(POSITIONS, layout.HEADER.unpack(BYTES), strict=True))


def test_fields_are_laid_out_in_struct_order():
    types = layout.HEADER.format.lstrip(">")
    assert tuple(POSITIONS) == BatchHeader._fields
    ends = [Struct(f">{types[: number + 1]}").size for number in range(len(types))]
    assert list(POSITIONS.values()) == [0, *ends[:-1]]
    assert ends[-1] == layout.HEADER_BYTES


def test_length_and_crc_cover_the_bytes_after_their_fields():
    assert layout.LENGTH_AT + layout.LENGTH.size == layout.OVERHEAD_BYTES
    assert layout.CRC_AT + layout.CRC.size == layout.CRC_START
    assert layout.ATTRIBUTES_AT + layout.ATTRIBUTES.size - 1 == layout.FLAGS_AT


@pytest.mark.parametrize(
    ("struct", "position", "fields"),
    [
        (layout.BASE_OFFSET, layout.BASE_OFFSET_AT, ["base_offset"]),
        (layout.LENGTH, layout.LENGTH_AT, ["length"]),
        (layout.LEADER_EPOCH, layout.LEADER_EPOCH_AT, ["leader_epoch"]),
        (layout.CRC, layout.CRC_AT, ["crc"]),
        (layout.ATTRIBUTES, layout.ATTRIBUTES_AT, ["attributes"]),
        (layout.MAX_TIMESTAMP, layout.MAX_TIMESTAMP_AT, ["max_timestamp"]),
        (layout.RECORD_COUNT, layout.RECORD_COUNT_AT, ["record_count"]),
        (layout.TIMESTAMPS, layout.BASE_TIMESTAMP_AT, ["base_timestamp", "max_timestamp"]),
        (
            layout.PRODUCER,
            layout.PRODUCER_ID_AT,
            ["producer_id", "producer_epoch", "base_sequence"],
        ),
        (layout.LENGTH_AND_MAGIC, 0, ["length", "magic"]),
        (
            layout.OFFSETS_AND_ATTRIBUTES,
            0,
            ["base_offset", "length", "attributes", "last_offset_delta"],
        ),
    ],
)
def test_partial_struct_reads_same_values_as_full_header(struct, position, fields):
    assert struct.unpack_from(BYTES, position) == tuple(FIELDS[name] for name in fields)


def test_first_check_reads_length_magic_and_low_attribute_byte():
    expected = (FIELDS["length"], FIELDS["magic"], BYTES[layout.FLAGS_AT])
    assert layout.LENGTH_MAGIC_FLAGS.unpack_from(BYTES) == expected


def test_c_source_has_the_same_constants():
    text = (ROOT / "codecs/_layout.h").read_text(encoding="utf-8")
    in_c = {name: int(value, 0) for name, value in re.findall(r"(\w+) = (\w+),", text)}
    positions = {name for name in vars(layout) if name.endswith("_AT")}
    assert positions <= in_c.keys()
    assert in_c == {name: getattr(layout, name) for name in in_c}


@pytest.mark.parametrize("name", C_SOURCES)
def test_c_source_uses_named_field_offsets(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    matches = re.findall(r"\b(?:p|start|buf) \+ (\d+)|\bp\[(\d+)\]|\+ (\d+)\]", text)
    numbers = [int(number) for groups in matches for number in groups if number]
    # Smaller numbers may be a byte's place in a word, or a word's in a frame.
    assert [number for number in numbers if number >= layout.LENGTH_AT] == []


def test_readme_has_the_same_table():
    text = (ROOT / "codecs/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| u?int\d+ \| (\w+)", text, re.MULTILINE)
    assert {name: int(position) for position, name in rows} == POSITIONS
