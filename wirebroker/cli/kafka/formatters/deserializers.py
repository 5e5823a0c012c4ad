"""Kafka's deserializers: how bytes are printed."""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.formatters.java_numbers import double_text, float_text
from wirebroker.cli.kafka.plumbing.java_words import with_replacements
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

_PACKAGE: Final = "org.apache.kafka.common.serialization."


def _boolean(number: int) -> str:
    if number not in {0, 1}:
        raise ClientError(f"Unexpected byte received by BooleanDeserializer: {number}")
    return "true" if number else "false"


def _void(_data: bytes) -> bytes:
    raise ClientError("Data should be null for a VoidDeserializer.")


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError:
        raise ClientError("Error parsing data into UUID") from None


def _escaped(data: bytes) -> bytes:
    """Escape all bytes but printable ASCII, as Kafka's Bytes.toString does."""
    return "".join(
        chr(byte) if chr(byte).isprintable() and byte < 0x7F and byte != 0x5C else f"\\x{byte:02X}"
        for byte in data
    ).encode()


_NUMBERS: Final[dict[str, tuple[struct.Struct, Callable[..., str]]]] = {
    "BooleanDeserializer": (struct.Struct(">b"), _boolean),
    "ShortDeserializer": (struct.Struct(">h"), str),
    "IntegerDeserializer": (struct.Struct(">i"), str),
    "LongDeserializer": (struct.Struct(">q"), str),
    "FloatDeserializer": (struct.Struct(">f"), float_text),
    "DoubleDeserializer": (struct.Struct(">d"), double_text),
}
# ByteArrayDeserializer: Java prints the address of an object; wirebroker prints the bytes.
_OTHERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "StringDeserializer": with_replacements,
    "ByteArrayDeserializer": bytes,
    "BytesDeserializer": _escaped,
    "ByteBufferDeserializer": lambda data: (
        b"java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]" % (len(data), len(data))
    ),
    "UUIDDeserializer": _uuid,
    "VoidDeserializer": _void,
}


def deserializer_of(name: str | None, null: bytes) -> Callable[[bytes | None], bytes]:
    """Return a function from bytes to printed text; without a class it returns the bytes.

    As in Kafka's tool, an unknown class (`name`, with or without package) is reported, and bytes
    are printed unchanged. `null` is the text for null.
    """
    short = "ByteArrayDeserializer" if name is None else name.removeprefix(_PACKAGE)
    if short in _NUMBERS:
        read = _number_reader(short)
    elif short in _OTHERS:
        read = _OTHERS[short]
    else:
        supported = ", ".join(sorted([*_OTHERS, *_NUMBERS]))
        click.echo(
            f"Unable to instantiate a deserializer from {name}: there are {supported}", err=True
        )
        read = bytes
    return lambda data: null if data is None else read(data)


def _number_reader(name: str) -> Callable[[bytes], bytes]:
    form, format_number = _NUMBERS[name]

    def read(data: bytes) -> bytes:
        if len(data) != form.size:
            raise ClientError(f"Size of data received by {name} is not {form.size}")
        return format_number(*form.unpack(data)).encode()

    return read
