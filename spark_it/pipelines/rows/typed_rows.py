"""Parsing of lines as rows of a schema, an ordered table of columns (spark_it/README.md).

A row becomes JSON in schema order, with decimals as texts and times as ISO 8601 in UTC. No value is
changed silently: a fraction is not an int, nor is a number that is too large. Avro UUIDs are
strings.
"""

from __future__ import annotations

import csv
import datetime
import json
import math
import re
import uuid
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.json_text import parse_json
from wirebroker.pipelines.job.errors import BadRowError, JobFileError
from wirebroker.pipelines.job.job_file import like

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_MILLISECONDS = re.compile("-?[0-9]+")
_NANOSECONDS = re.compile("[.,][0-9]{6}0*[1-9]")
_HALVES = re.compile("[\ud800-\udfff]")
_MOST_DIGITS: Final = 38
_CONTEXT: Final = Context(prec=_MOST_DIGITS)
_BITS: Final = {"int": 31, "long": 63}
_WORDS: Final = {"true": True, "false": False}
# Python's default limit, for the whole process, is 128 KiB.
_MOST_CELL_BYTES: Final = 128 << 20
_BYTE_ORDER_MARK: Final = "\ufeff"
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Column(NamedTuple):
    """A column of a schema; `digits` are a decimal's precision and scale."""

    name: str
    type_name: str
    is_optional: bool
    digits: tuple[int, int] = (0, 0)


def parse_schema(table: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return a schema's columns; raise JobFileError if it is empty or a type is invalid."""
    if not table:
        raise JobFileError("[schema] has no columns: name = type, one per line")
    return tuple(_column(name, text) for name, text in table.items())


def _column(name: str, text: Any) -> Column:
    if not isinstance(text, str):
        raise JobFileError(f"[schema] {name} = {text!r} is not a type: types are strings")
    type_name = text.removesuffix("?").strip()
    is_optional = text.endswith("?")
    match = _DECIMAL.fullmatch(type_name)
    if match:
        digits, scale = int(match[1]), int(match[2])
        if not 1 <= digits <= _MOST_DIGITS or scale > digits:
            raise JobFileError(f"[schema] {name}: {type_name} must have 1 to 38 digits in all")
        return Column(name, "decimal", is_optional, (digits, scale))
    if type_name not in _READERS:
        type_names = [*_READERS, "decimal(10,2)"]
        raise JobFileError(
            f"[schema] {name}: unknown type {type_name}{like(type_name, type_names)}"
        )
    return Column(name, type_name, is_optional)


class RowReader:
    """Reader for rows of one schema; `drops_unknown` ignores fields that it lacks."""

    def __init__(
        self, columns: Sequence[Column], *, drops_unknown: bool = False, delimiter: str = ","
    ) -> None:
        self._columns = {column.name: column for column in columns}
        self._drops_unknown = drops_unknown
        self._delimiter = delimiter
        self._header = [_as_title(name) for name in self._columns]
        csv.field_size_limit(_MOST_CELL_BYTES)

    def from_json(self, line: bytes) -> dict[str, Any]:
        """Return a JSON line's values by column; raise BadRowError if it does not match."""
        try:
            parsed = parse_json(_text(line), fields=_fields, fraction=Decimal)
        except (ValueError, InvalidOperation) as error:
            raise BadRowError(f"is not valid JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise BadRowError(f"is not a JSON object but {type(parsed).__name__}")
        return self.from_fields(parsed)

    def from_csv(self, line: bytes) -> dict[str, Any] | None:
        """Return a CSV line's values by column, or None for a header; raise BadRowError."""
        text = _text(line).removesuffix("\r")
        try:
            cells = next(csv.reader([text], delimiter=self._delimiter, strict=True))
        except (csv.Error, StopIteration) as error:
            raise BadRowError(f"is not valid CSV: {error}") from error
        if len(cells) != len(self._columns):
            raise BadRowError(f"has {len(cells)} cells, the schema {len(self._columns)} columns")
        if _as_title(cells[0]) in self._header:
            titles = [_as_title(cell) for cell in cells]
            if titles == self._header:
                return None
            if sorted(titles) == sorted(self._header):
                raise BadRowError("has the columns' names in another order than the schema")
        return {
            name: _value(column, _of_cell(column, cell))
            for (name, column), cell in zip(self._columns.items(), cells, strict=True)
        }

    def from_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a parsed row's values by column; raise BadRowError if it does not match."""
        if not self._drops_unknown:
            for name in fields:
                if name not in self._columns:
                    hint = like(name, self._columns)
                    raise BadRowError(f"field {name} is not in the schema{hint}")
        return {name: _value(column, fields.get(name)) for name, column in self._columns.items()}


def json_of(row: Mapping[str, Any]) -> bytes:
    """Return a row as JSON."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_told).encode()


def text_of(value: Any) -> str:
    """Return a value as a record's key: texts unchanged, others as in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _told(value)


def milliseconds_of(value: datetime.datetime) -> int:
    """Return a time as milliseconds since 1970."""
    return (value - _EPOCH) // datetime.timedelta(milliseconds=1)


def is_text(value: Any) -> bool:
    """Return whether a value is text without lone surrogates, which JSON may escape."""
    return isinstance(value, str) and _HALVES.search(value) is None


def _told(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    assert isinstance(value, Decimal), value
    return f"{value:f}"


def _as_title(text: str) -> str:
    return text.strip().casefold()


def _text(line: bytes) -> str:
    try:
        return line.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise BadRowError(f"is not valid UTF-8: {error.reason} at byte {error.start}") from error


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise BadRowError(
            f"has field {next(name for name in names if names.count(name) > 1)} twice"
        )
    return fields


def _of_cell(column: Column, cell: str) -> Any:
    """Convert a CSV cell to the value that JSON would have."""
    if not cell and (column.is_optional or column.type_name != "string"):
        return None
    if column.type_name == "boolean":
        return _WORDS.get(cell.lower(), cell)
    if column.type_name in ("int", "long", "double") and _is_plain(cell):
        try:
            return int(cell) if column.type_name != "double" else Decimal(cell)
        except (ValueError, InvalidOperation):
            return cell
    if column.type_name == "timestamp" and _MILLISECONDS.fullmatch(cell):
        return int(cell) if len(cell) <= _MOST_DIGITS else cell
    return cell


def _is_plain(number: str) -> bool:
    """Return whether a number has no syntax of Python's: 1_000, digits of other scripts."""
    return number.isascii() and "_" not in number


def _value(column: Column, raw: Any) -> Any:
    if raw is None:
        if column.is_optional:
            return None
        raise BadRowError(f"field {column.name} is missing")
    value = (_decimal if column.type_name == "decimal" else _READERS[column.type_name])(column, raw)
    if value is None:
        kind = column.type_name
        raise BadRowError(f"field {column.name} is not of type {kind}: {_shortened(raw)}")
    return value


def _shortened(raw: Any) -> str:
    text = str(raw) if not isinstance(raw, str) else repr(raw)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _string(_: Column, raw: Any) -> str | None:
    if isinstance(raw, uuid.UUID):
        return str(raw)
    return raw if is_text(raw) else None


def _boolean(_: Column, raw: Any) -> bool | None:
    return raw if isinstance(raw, bool) else None


def _integer(column: Column, raw: Any) -> int | None:
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    limit = 1 << _BITS[column.type_name]
    return raw if -limit <= raw < limit else None


def _double(_: Column, raw: Any) -> float | None:
    if not isinstance(raw, int | float | Decimal) or isinstance(raw, bool):
        return None
    try:
        value = float(raw)
    except (OverflowError, ValueError):  # of a Decimal sNaN
        return None
    return value if math.isfinite(value) else None


def _decimal(column: Column, raw: Any) -> Decimal | None:
    if not isinstance(raw, int | str | Decimal) or isinstance(raw, bool):
        return None
    digits, scale = column.digits
    if isinstance(raw, str) and not _is_plain(raw):
        return None
    try:
        number = Decimal(raw)
        if not number.is_finite() or (number and number.adjusted() >= digits - scale):
            return None
        value = number.quantize(Decimal(1).scaleb(-scale), context=_CONTEXT)
    except InvalidOperation:
        return None
    return value if value == number else None


def _date(_: Column, raw: Any) -> datetime.date | None:
    if isinstance(raw, datetime.date) and not isinstance(raw, datetime.datetime):
        return raw
    try:
        return datetime.date.fromisoformat(raw) if isinstance(raw, str) else None
    except ValueError:
        return None


def _timestamp(_: Column, raw: Any) -> datetime.datetime | None:
    try:
        if isinstance(raw, datetime.datetime):
            return _in_utc(raw)
        if isinstance(raw, int) and not isinstance(raw, bool):
            return _EPOCH + datetime.timedelta(milliseconds=raw)
        # fromisoformat ignores digits after microseconds.
        if isinstance(raw, str) and not _NANOSECONDS.search(raw):
            return _in_utc(datetime.datetime.fromisoformat(raw))
    except (ValueError, OverflowError):
        pass
    return None


def _in_utc(timestamp: datetime.datetime) -> datetime.datetime:
    if timestamp.tzinfo is None:
        return timestamp.replace(tzinfo=datetime.UTC)
    return timestamp.astimezone(datetime.UTC)


_READERS: Final[dict[str, Callable[[Column, Any], Any]]] = {
    "string": _string,
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "double": _double,
    "date": _date,
    "timestamp": _timestamp,
}
