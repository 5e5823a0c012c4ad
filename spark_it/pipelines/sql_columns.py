"""A job's columns as Spark's SQL has them."""

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
    # Spark takes a number for seconds; rows of ours have milliseconds, as records do.
    "timestamp": "STRING",
}
_MILLISECONDS: Final = r"^-?[0-9]{1,15}$"


def quoted(name: str) -> str:
    """Return a column's name as SQL has it, whatever it holds: a dot would be a field's else."""
    return f"`{name.replace('`', '``')}`"


def sql_schema(columns: Iterable[Column]) -> str:
    """Return columns as DDL; all may be null, which from_json makes of what it cannot read."""
    return ", ".join(f"{quoted(each.name)} {_sql_type(each)}" for each in columns)


def sql_values(struct: str, columns: Iterable[Column]) -> dict[str, str]:
    """Return SQL for the values of a struct that was read by `sql_schema`, by columns' names."""
    return {each.name: _sql_value(f"{struct}.{quoted(each.name)}", each) for each in columns}


def _sql_value(text: str, column: Column) -> str:
    if column.type_name != "timestamp":
        return text
    return (
        f"CASE WHEN {text} RLIKE '{_MILLISECONDS}' THEN timestamp_millis(CAST({text} AS BIGINT)) "
        f"ELSE try_cast({text} AS TIMESTAMP) END"
    )


def _sql_type(column: Column) -> str:
    if column.type_name == "decimal":
        digits, scale = column.digits
        return f"DECIMAL({digits},{scale})"
    return _TYPES[column.type_name]
