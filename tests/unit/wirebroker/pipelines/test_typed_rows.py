"""Lines with a schema: their parsed values, and reasons for rejection."""

from __future__ import annotations

import contextlib
import datetime
import json
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.pipelines.job.errors import BadRowError, JobFileError
from wirebroker.pipelines.rows.typed_rows import (
    RowReader,
    json_of,
    milliseconds_of,
    parse_schema,
    text_of,
)

SCHEMA = {
    "id": "long",
    "who": "string?",
    "small": "int?",
    "is_new": "boolean?",
    "weight": "double?",
    "price": "decimal(6,2)?",
    "day": "date?",
    "at": "timestamp?",
}
READER = RowReader(parse_schema(SCHEMA))


def test_json_line_is_typed_and_written_in_schema_order():
    line = (
        b'{"at": "2026-01-31T12:00:00.250+01:00", "id": 9223372036854775807, "who": "\xc3\xa9",'
        b' "price": 12.5, "day": "2026-02-28", "weight": 1, "is_new": true, "small": -3}'
    )
    row = READER.from_json(line)
    timestamp = datetime.datetime(2026, 1, 31, 11, 0, 0, 250_000, tzinfo=datetime.UTC)
    assert row == {
        "id": (1 << 63) - 1,
        "who": "é",
        "small": -3,
        "is_new": True,
        "weight": 1.0,
        "price": Decimal("12.50"),
        "day": datetime.date(2026, 2, 28),
        "at": timestamp,
    }
    assert json_of(row).decode() == (
        '{"id":9223372036854775807,"who":"é","small":-3,"is_new":true,"weight":1.0,'
        '"price":"12.50","day":"2026-02-28","at":"2026-01-31T11:00:00.250000Z"}'
    )
    assert milliseconds_of(timestamp) == 1_769_857_200_250
    assert [text_of(value) for value in row.values()] == [
        *("9223372036854775807", "é", "-3", "true", "1.0"),
        *("12.50", "2026-02-28", "2026-01-31T11:00:00.250000Z"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"7", "is not a JSON object but int"),
        (b'{"id": "7"}', "field id is not of type long: '7'"),
        (b'{"id": 7.5}', "field id is not of type long: 7.5"),
        (b'{"id": true}', "field id is not of type long: True"),
        (b'{"id": 9223372036854775808}', "field id is not of type long"),
        (b"{}", "field id is missing"),
        (b'{"id": null}', "field id is missing"),
        (b'{"id": 1, "id": 2}', "has field id twice"),
        (b'{"id": 1, "whoo": "x"}', "field whoo is not in the schema; did you mean who?"),
        (b'{"id": 1, "who": 7}', "field who is not of type string: 7"),
        (b'{"id": 1, "weight": 1e999}', "field weight is not of type double"),
        (b'{"id": 1, "weight": NaN}', "NaN is not a JSON number"),
        (b'{"id": 1, "price": 1.005}', "field price is not of type decimal: 1.005"),
        (b'{"id": 1, "price": 10000}', "field price is not of type decimal: 10000"),
        (b'{"id": 1, "price": "NaN"}', "field price is not of type decimal: 'NaN'"),
        (b'{"id": 1, "day": "2026-02-30"}', "field day is not of type date: '2026-02-30'"),
        (b'{"id": 1, "at": 1e20}', "field at is not of type timestamp"),
        (b'{"id": 1, "at": "12:00"}', "field at is not of type timestamp"),
        (b'{"id": 1, "at": "2026-01-31T12:00:00.1234567Z"}', "field at is not of type timestamp"),
        (b'{"id": 1, "at": "2026-01-31T12:00:00.000000001"}', "field at is not of type timestamp"),
        (b'{"id": 1, "at": 99999999999999999}', "field at is not of type timestamp"),
        (b'{"id": 1, "who": "\\ud83d"}', "field who is not of type string: '\\ud83d'"),
        (b'{"id": 1, "price": "1_0"}', "field price is not of type decimal: '1_0'"),
        (b"\xff{}", "is not valid UTF-8: invalid start byte at byte 0"),
    ],
)
def test_invalid_line_has_a_reason(line, reason):
    with pytest.raises(BadRowError) as raised:
        READER.from_json(line)
    assert reason in str(raised.value)


def test_csv_is_read_with_the_same_schema():
    reader = RowReader(parse_schema(SCHEMA), delimiter=";")
    row = reader.from_csv(b'7;"a;""b""";;TRUE;0.5;1;;1769857200250\r')
    assert row == {
        "id": 7,
        "who": 'a;"b"',
        "small": None,
        "is_new": True,
        "weight": 0.5,
        "price": Decimal("1.00"),
        "day": None,
        "at": datetime.datetime(2026, 1, 31, 11, 0, 0, 250_000, tzinfo=datetime.UTC),
    }
    assert reader.from_csv(";".join(SCHEMA).encode()) is None
    for line, reason in {
        b"7;x": "has 2 cells, the schema 8 columns",
        b'7;"x': "is not valid CSV",
        b"x;;;;;;;": "field id is not of type long: 'x'",
        b";;;;;;;": "field id is missing",
        b"1;;;yes;;;;": "field is_new is not of type boolean: 'yes'",
        b"1_000;;;;;;;": "field id is not of type long: '1_000'",
        "\u0661;;;;;;;".encode(): "field id is not of type long: '\u0661'",
        b"1;;;;snan;;;": "field weight is not of type double: sNaN",
        b"1;;;;;;;--5": "field at is not of type timestamp: '--5'",
        "1;;;;;;;\u0661".encode(): "field at is not of type timestamp: '\u0661'",
        ";".join(reversed(SCHEMA)).encode(): "has the columns' names in another order",
    }.items():
        with pytest.raises(BadRowError, match=reason):
            reader.from_csv(line)


def test_decimal_has_the_precision_of_its_schema():
    reader = RowReader(parse_schema({"all": "decimal(38,2)", "behind": "decimal(2,2)"}))
    largest = f"{'9' * 36}.99"
    row = reader.from_csv(f"{largest},0".encode())
    assert row == {"all": Decimal(largest), "behind": Decimal(0)}
    assert json_of(row).decode() == f'{{"all":"{largest}","behind":"0.00"}}'
    for line in (f"1{largest},0", f"{largest}9,0", "0,1"):
        with pytest.raises(BadRowError, match="is not of type decimal"):
            reader.from_csv(line.encode())


@pytest.mark.parametrize("line", ["a,b", '"a","b"', "a, b", "A,B\r", '\ufeff"a",b'])
def test_csv_header_line_is_no_row(line):
    reader = RowReader(parse_schema({"a": "string", "b": "string"}))
    assert reader.from_csv(line.encode()) is None


def test_byte_order_mark_is_ignored():
    reader = RowReader(parse_schema({"id": "long"}))
    assert reader.from_csv("\ufeff1".encode()) == {"id": 1}
    assert reader.from_json('\ufeff{"id": 1}'.encode()) == {"id": 1}


def test_csv_cell_may_be_as_large_as_a_record():
    reader = RowReader(parse_schema({"text": "string"}))
    assert reader.from_csv(b"x" * 900_000) == {"text": "x" * 900_000}


def test_avro_uuid_becomes_a_string():
    reader = RowReader(parse_schema({"id": "string"}))
    fields = {"id": uuid.UUID(int=1)}
    assert reader.from_fields(fields) == {"id": "00000000-0000-0000-0000-000000000001"}


def test_fields_outside_the_schema_may_be_omitted():
    reader = RowReader(parse_schema({"id": "long"}), drops_unknown=True)
    assert reader.from_json(b'{"id": 1, "more": []}') == {"id": 1}


@pytest.mark.parametrize("text", ["longg", "decimal(39,2)", "decimal(2,3)", "", 7])
def test_unknown_type_is_refused(text):
    with pytest.raises(JobFileError, match=r"\[schema\] id"):
        parse_schema({"id": text})
    with pytest.raises(JobFileError):
        parse_schema({})


_CELL = st.sampled_from(["", "1", "snan", "inf", "1e999", "1_0", "x", "2026-01-31"])


@given(
    st.binary(max_size=60)
    | st.lists(_CELL | st.text(max_size=5), min_size=8, max_size=8).map(
        lambda cells: ",".join(cells).encode(errors="replace")
    )
    | st.dictionaries(st.sampled_from([*SCHEMA]), _CELL | st.text() | st.just("\ud800")).map(
        lambda found: json.dumps({"id": 1, **found}).encode()
    )
)
def test_any_line_is_a_row_or_has_a_reason(line):
    for read in (READER.from_json, READER.from_csv):
        row = None
        with contextlib.suppress(BadRowError):
            row = read(line)
        if row is not None:
            assert list(row) == list(SCHEMA)
            assert READER.from_json(json_of(row)) == row


@given(
    st.fixed_dictionaries(
        {"id": st.integers(-(1 << 63), (1 << 63) - 1)},
        optional={
            "who": st.text(max_size=20) | st.none(),
            "weight": st.floats(allow_nan=False, allow_infinity=False),
            "is_new": st.booleans(),
            "price": st.decimals(-9999, 9999, places=2).map(str),
        },
    )
)
def test_written_row_is_read_back(found):
    row = READER.from_json(json.dumps(found).encode())
    assert READER.from_json(json_of(row)) == row
    assert {key: row[key] for key in ("id", "who", "is_new") if key in found} == {
        key: found[key] for key in ("id", "who", "is_new") if key in found
    }
