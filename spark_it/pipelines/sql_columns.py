"""A job's schema as Spark's SQL has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.pipelines.typed_rows import Column

_TYPES: Final = {
    "string": "STRING",
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def sql_schema(columns: Iterable[Column]) -> str:
    """Return columns as DDL; all may be null, which from_json makes of what it cannot read."""
    return ", ".join(f"`{each.name}` {_sql_type(each)}" for each in columns)


def _sql_type(column: Column) -> str:
    if column.type_name == "decimal":
        digits, scale = column.digits
        return f"DECIMAL({digits},{scale})"
    return _TYPES[column.type_name]
