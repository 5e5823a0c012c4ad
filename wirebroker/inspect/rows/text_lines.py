"""Rows as text: one line each, in aligned columns below a heading.

Timestamps are UTC; -1 (none) is `-`. Control characters are escaped.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from wirebroker.inspect.rows.json_lines import plain_json

if TYPE_CHECKING:
    from wirebroker.inspect.rows.rows import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# type -> heading and format of its columns; `_columns` returns the values.
_TABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "batch": (
        (
            "OFFSETS",
            "RECORDS",
            "POSITION",
            "BYTES",
            "EPOCH",
            "TIMESTAMP",
            "CODEC",
            "PRODUCER",
            "CRC",
            "FLAGS",
        ),
        "{:<21} {:>7} {:>10} {:>9} {:>5} {:<24} {:<6} {:<17} {:<8} {}",
    ),
    "offset_index_entry": (("OFFSET", "POSITION"), "{:>12} {:>12}"),
    "time_index_entry": (("TIMESTAMP", "OFFSET"), "{:<24} {:>12}"),
    "aborted_transaction": (
        ("PRODUCER", "FIRST", "LAST", "LAST STABLE"),
        "{:>10} {:>12} {:>12} {:>12}",
    ),
    "producer": (
        ("PRODUCER", "EPOCH", "SEQUENCE", "OFFSETS", "TIMESTAMP", "COORDINATOR", "TRANSACTION"),
        "{:>10} {:>5} {:>10} {:<21} {:<24} {:>11} {:>11}",
    ),
    "checkpoint": (("OFFSET", "PARTITION"), "{:>12} {}"),
    "leader_epoch": (("EPOCH", "START"), "{:>6} {:>12}"),
}


class TextLines:
    """Converts rows to lines, with a heading when the type of row changes."""

    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table = ""

    def lines(self, row: Row) -> list[str]:
        """Return a row's lines."""
        kind = row["type"]
        if kind == "file":
            self._table = ""
            return ["", f"{printable(row['path'])} ({row['size']:,} bytes)"]
        if kind == "damage":
            return [f"! {_place(row)}{printable(row['message'])}"]
        if kind == "record":
            return [_record(row)]
        if kind not in _TABLES:
            return ["  " + _fields(row)]
        heading, layout = _TABLES[kind]
        line = "  " + layout.format(*_columns(row)).rstrip()
        if kind == self._table:
            return [line]
        self._table = kind
        return ["  " + layout.format(*heading).rstrip(), line]


def timestamp_text(timestamp_ms: int) -> str:
    """Return a timestamp in UTC, `-` for none, the number if it is not a date."""
    if timestamp_ms == -1:
        return "-"
    try:
        utc_time = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return utc_time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"


def printable(text: str) -> str:
    """Escape control characters."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _columns(row: Row) -> tuple[Any, ...]:  # noqa: PLR0911 - one for each kind
    match row["type"]:
        case "batch":
            return _batch_columns(row)
        case "offset_index_entry":
            return row["offset"], row["position"]
        case "time_index_entry":
            return timestamp_text(row["timestamp"]), row["offset"]
        case "aborted_transaction":
            return (
                row["producer_id"],
                row["first_offset"],
                row["last_offset"],
                row["last_stable_offset"],
            )
        case "producer":
            return _producer_columns(row)
        case "checkpoint":
            return row["offset"], f"{printable(row['topic'])}-{row['partition']}"
        case _:
            return row["epoch"], row["start_offset"]


def _batch_columns(row: Row) -> tuple[Any, ...]:
    flags = [
        name
        for name, is_set in (
            ("control", row["is_control"]),
            ("transactional", row["is_transactional"]),
            ("append-time", row["timestamp_type"] == "LogAppendTime"),
            ("delete-horizon", row["has_delete_horizon"]),
        )
        if is_set
    ]
    producer = "-"
    if row["producer_id"] >= 0:
        producer = f"{row['producer_id']}/{row['producer_epoch']}"
        if row["base_sequence"] >= 0:
            producer += f" seq {row['base_sequence']}"
    codec = row["compression_type"]
    return (
        _range(row["base_offset"], row["last_offset"]),
        row["record_count"],
        row["position"],
        row["size"],
        row["leader_epoch"],
        timestamp_text(row["max_timestamp"]),
        "-" if codec == "none" else codec,
        producer,
        f"{row['crc']:08x}",
        ",".join(flags),
    )


def _producer_columns(row: Row) -> tuple[Any, ...]:
    first, last = row["last_offset"] - row["offset_delta"], row["last_offset"]
    return (
        row["producer_id"],
        row["producer_epoch"],
        _number(row["last_sequence"]),
        "-" if last < 0 else _range(first, last),
        timestamp_text(row["timestamp_ms"]),
        _number(row["coordinator_epoch"]),
        _number(row["current_txn_first_offset"]),
    )


def _record(row: Row) -> str:
    head = f"    {row['offset']} {timestamp_text(row['timestamp'])}"
    head += "".join(f" {name}={row[name]}" for name in ("sequence", "key_size", "value_size"))
    if row["decoded"]:
        return f"{head} {_fields(row['decoded'])}"
    line = f"{head} key={_value(row['key'])} value={_value(row['value'])}"
    if row["headers"]:
        pairs = ", ".join(
            f"{_value(header['key'])}={_value(header['value'])}" for header in row["headers"]
        )
        line += f" headers={{{pairs}}}"
    return line


def _fields(row: Row) -> str:
    """Return a dict as `KIND name=value …`."""
    fields = dict(row)
    kind = fields.pop("type", None) or fields.pop("record_type", None)
    kind = kind or fields.pop("control_type", "")
    words = [f"{name}={_value(value, name)}" for name, value in fields.items()]
    return " ".join([str(kind), *words]).strip()


def _value(value: Any, name: str = "") -> str:
    value = plain_json(value, name)
    if isinstance(value, str):
        return f'"{printable(value)}"' if not value or " " in value else printable(value)
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value)
        if value.keys() == {"base64"}:
            return f"base64:{value['base64']}"
        return (
            "{"
            + " ".join(f"{key}={_value(field_value)}" for key, field_value in value.items())
            + "}"
        )
    if value.__class__ is list:
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _place(row: Row) -> str:
    words = [
        f"{name} {row[name]}"
        for name in ("position", "offset", "length")
        if row.get(name) is not None
    ]
    return ", ".join(words) + ": " if words else ""


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _number(number: int) -> str:
    return "-" if number == -1 else str(number)
