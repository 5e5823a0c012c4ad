"""A topic's JSON values as Spark columns, parsed as in ingest (typed_rows.py).

A value that does not match the schema becomes null; unknown fields are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow
from pyspark.sql import functions

from wirebroker.pipelines.job.errors import BadRowError
from wirebroker.pipelines.rows.typed_rows import RowReader
from wirebroker.pipelines.windows.late_rows import task_late_watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from wirebroker.pipelines.rows.typed_rows import Column

_ARROW_TYPES = {
    "string": pyarrow.string(),
    "boolean": pyarrow.bool_(),
    "int": pyarrow.int32(),
    "long": pyarrow.int64(),
    "double": pyarrow.float64(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us", "UTC"),
}
_SQL_TYPES: Final = {
    "string": "STRING",
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_NAMES: Final = ["key", "time_ms", "late_watermark_ms", "row"]


def with_row(table: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return records' keys and timestamps, with their values as a struct `row`.

    `late_watermark_ms` is explained in late_rows.py.
    """
    records = table.select("key", functions.unix_millis("timestamp").alias("time_ms"), "value")
    fields = sql_schema(columns)
    schema = f"key BINARY, time_ms LONG, late_watermark_ms LONG, row STRUCT<{fields}>"
    parsed = records.mapInArrow(ParsingTask(columns), schema)
    time = functions.timestamp_millis("time_ms").alias("timestamp")
    return parsed.select("key", time, "late_watermark_ms", "row")


class ParsingTask:
    """A Spark task that parses values."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        reader = RowReader(self._columns, drops_unknown=True)
        fields = [(column.name, _arrow_type(column)) for column in self._columns]
        watermark = pyarrow.scalar(task_late_watermark(), pyarrow.int64())
        for batch in batches:
            values = batch.column("value").to_pylist()
            rows = pyarrow.array([_row(reader, value) for value in values], pyarrow.struct(fields))
            watermarks = pyarrow.repeat(watermark, len(values))
            columns = [batch.column("key"), batch.column("time_ms"), watermarks, rows]
            yield pyarrow.RecordBatch.from_arrays(columns, _NAMES)


def _row(reader: RowReader, value: bytes | None) -> dict[str, Any] | None:
    try:
        return None if value is None else reader.from_json(value)
    except BadRowError:
        return None


def _arrow_type(column: Column) -> pyarrow.DataType:
    if column.type_name == "decimal":
        return pyarrow.decimal128(*column.digits)
    return _ARROW_TYPES[column.type_name]


def quoted(name: str) -> str:
    """Return a quoted column name; SQL would read a dot as access to a field."""
    return f"`{name.replace('`', '``')}`"


def sql_schema(columns: Iterable[Column]) -> str:
    """Return columns as the DDL of a struct with nullable fields."""
    return ", ".join(f"{quoted(column.name)}: {_sql_type(column)}" for column in columns)


def _sql_type(column: Column) -> str:
    if column.type_name == "decimal":
        digits, scale = column.digits
        return f"DECIMAL({digits},{scale})"
    return _SQL_TYPES[column.type_name]
