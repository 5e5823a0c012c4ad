"""A record as `kafka-console-consumer` prints it, and what it can read bytes as."""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.client.errors import ClientError
from wirebroker.scripts.properties import is_true

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.client.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

_PACKAGE: Final = "org.apache.kafka.common.serialization."
_STRINGS: Final = frozenset({"StringDeserializer", "ByteArrayDeserializer", "BytesDeserializer"})
_NUMBERS: Final = {
    "ShortDeserializer": struct.Struct(">h"),
    "IntegerDeserializer": struct.Struct(">i"),
    "LongDeserializer": struct.Struct(">q"),
    "FloatDeserializer": struct.Struct(">f"),
    "DoubleDeserializer": struct.Struct(">d"),
}
_UUID: Final = "UUIDDeserializer"


class RecordPrinter:
    """Writes records as the default formatter does."""

    __slots__ = ("_line_end", "_of_header", "_of_key", "_of_value", "_properties", "_separator")

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take how records are printed; unknown properties have no effect, as in Kafka.

        Raises:
            click.UsageError: A class isn't known.
        """
        self._properties = properties
        null = properties.get("null.literal", "null").encode()
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._of_key = _reader_of(properties.get("key.deserializer"), null)
        self._of_value = _reader_of(properties.get("value.deserializer"), null)
        self._of_header = _reader_of(properties.get("headers.deserializer"), null)

    def line_of(self, place: TopicPartition, record: Record, timestamp_type: str) -> bytes:
        """Return a record as it is printed.

        Raises:
            ClientError: Its bytes are no such number.
        """
        shown = self._properties
        pieces: list[bytes] = []
        if is_true(shown, "print.timestamp"):
            pieces.append(f"{timestamp_type}:{record.timestamp}".encode())
        if is_true(shown, "print.partition"):
            pieces.append(b"Partition:%d" % place.partition)
        if is_true(shown, "print.offset"):
            pieces.append(b"Offset:%d" % record.offset)
        if is_true(shown, "print.headers"):
            pieces.append(self._headers(record))
        if is_true(shown, "print.key"):
            pieces.append(self._of_key(record.key))
        has_value = is_true(shown, "print.value", otherwise=True)
        if has_value:
            pieces.append(self._of_value(record.value))
        # Without a value Kafka's formatter ends no line; a terminal wants one all the same.
        return self._separator.join(pieces) + self._line_end

    def _headers(self, record: Record) -> bytes:
        separator = self._properties.get("headers.separator", ",").encode()
        rows = [
            name.encode("utf-8", "surrogateescape") + b":" + self._of_header(value)
            for name, value in record.headers
        ]
        return separator.join(rows) or b"NO_HEADERS"


def _reader_of(name: str | None, null: bytes) -> Callable[[bytes | None], bytes]:
    """Return what makes of bytes what is printed, by the name of one of Java's classes."""
    short = "StringDeserializer" if name is None else name.removeprefix(_PACKAGE)
    if short in _STRINGS:
        return lambda data: null if data is None else data
    if short == _UUID:
        return lambda data: null if data is None else str(_uuid(data)).encode()
    form = _NUMBERS.get(short)
    if form is None:
        known = ", ".join(sorted([*_STRINGS, *_NUMBERS, _UUID]))
        raise click.UsageError(f"there is no {name} here; there are {known} of {_PACKAGE[:-1]}")

    def number(data: bytes | None) -> bytes:
        if data is None:
            return null
        if len(data) != form.size:
            raise ClientError(f"Size of data received by {short} is not {form.size}")
        (found,) = form.unpack(data)
        return str(found).encode()

    return number


def _uuid(data: bytes) -> Any:
    try:
        return uuid.UUID(data.decode())
    except ValueError:
        raise ClientError("Error parsing data into UUID") from None
