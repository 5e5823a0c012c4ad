"""A job's columns in Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.pipelines.rows.typed_rows import Column

_TYPES: Final = {
    "string": "STRING",
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


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
    return _TYPES[column.type_name]
