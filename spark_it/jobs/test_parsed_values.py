"""A topic's values are parsed as in ingest; invalid ones become null."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pytest

pytestmark = [pytest.mark.long, pytest.mark.java]

SCHEMA = {
    "s.x": "string",
    "b": "boolean",
    "i": "int",
    "l": "long?",
    "d": "double",
    "p": "decimal(10,2)",
    "day": "date",
    "at": "timestamp",
}
GOOD = {
    "s.x": "x",
    "b": True,
    "i": 1,
    "d": 0.5,
    "p": "1.50",
    "day": "2026-01-31",
    "at": "2026-01-31T12:00:00.000001+01:00",
    "beyond": [1],
}


@pytest.mark.usefixtures("spark")  # makes PySpark and PyArrow importable
def test_values_of_each_type_are_parsed_into_arrow_columns() -> None:
    import pyarrow

    from wirebroker.pipelines.rows.typed_rows import parse_schema
    from wirebroker.pipelines.windows.parsed_values import ParsingTask

    values = [json.dumps(GOOD).encode(), None, b"no row", json.dumps(GOOD | {"p": 1.005}).encode()]
    batch = pyarrow.record_batch(
        {
            "key": pyarrow.array([b"k"] * 4, pyarrow.binary()),
            "time_ms": pyarrow.array([7] * 4, pyarrow.int64()),
            "value": pyarrow.array(values, pyarrow.binary()),
        }
    )
    (parsed,) = ParsingTask(parse_schema(SCHEMA))(iter([batch]))
    assert parsed.column("key").to_pylist() == [b"k"] * 4
    assert parsed.column("time_ms").to_pylist() == [7] * 4
    row = {
        "s.x": "x",
        "b": True,
        "i": 1,
        "l": None,
        "d": 0.5,
        "p": Decimal("1.50"),
        "day": datetime.date(2026, 1, 31),
        "at": datetime.datetime(2026, 1, 31, 11, microsecond=1, tzinfo=datetime.UTC),
    }
    assert parsed.column("row").to_pylist() == [row, None, None, None]
