"""The columns of a row: the Kafka connector's, and others from batch headers.

`topicId` and `headers` are included only on request. A missing producer id, epoch or sequence is
-1; an unknown topic id is null.
"""

from __future__ import annotations

from typing import Final

from wirebroker.segments.errors import OptionError

COLUMN_TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
    "producerId": "bigint",
    "producerEpoch": "int",
    "sequence": "int",
    "transactional": "boolean",
    "control": "boolean",
    "leaderEpoch": "int",
    "topicId": "string",
}
_NOT_UNASKED: Final = frozenset({"headers", "topicId"})


def column_names(requested: tuple[str, ...] | None, *, includes_headers: bool) -> tuple[str, ...]:
    """Return the columns of a read, in order.

    Raises:
        OptionError: A column is unknown or duplicate.
    """
    if requested is None:
        unasked = _NOT_UNASKED - {"headers"} if includes_headers else _NOT_UNASKED
        return tuple(name for name in COLUMN_TYPES if name not in unasked)
    for number, name in enumerate(requested):
        if name not in COLUMN_TYPES:
            raise OptionError(
                f"option columns: {name!r} is unknown; there are {', '.join(COLUMN_TYPES)}"
            )
        if name in requested[:number]:
            raise OptionError(f"option columns: {name} is listed twice")
    return requested


def schema_text(names: tuple[str, ...]) -> str:
    """Return the columns' schema for Spark."""
    return ", ".join(f"{name} {COLUMN_TYPES[name]}" for name in names)


def check_types(types: dict[str, str]) -> None:
    """Check the columns and types of the user's schema; raise OptionError."""
    for name, type_name in types.items():
        if name not in COLUMN_TYPES:
            raise OptionError(f"schema: {name!r} is unknown; there are {', '.join(COLUMN_TYPES)}")
        if type_name != COLUMN_TYPES[name]:
            raise OptionError(f"schema: {name} must be {COLUMN_TYPES[name]}, not {type_name}")
