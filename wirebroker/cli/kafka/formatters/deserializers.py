"""Kafka's deserializers: how bytes are printed."""

from __future__ import annotations

import math
import struct
import uuid
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.plumbing.java_words import with_replacements
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

# Java prints numbers in this range without an exponent.
_LEAST_PLAIN: Final = 1e-3
_BEYOND_PLAIN: Final = 1e7
_FLOAT: Final = struct.Struct(">f")
_MOST_DIGITS: Final = 17


def double_text(number: float) -> str:
    """Return a double as Java's text."""
    return _text(number, float)


def float_text(number: float) -> str:
    """Return a single-precision number as Java's text."""
    return _text(number, _single)


def _single(text: str) -> float:
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(float(text)))[0])
    except OverflowError:
        return math.inf


def _text(number: float, read: Callable[[str], float]) -> str:
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1, number) < 0 else ""
    size = abs(number)
    if math.isinf(size):
        return f"{sign}Infinity"
    if not size:
        return f"{sign}0.0"
    digits, exponent = _digits(size, read)
    if _LEAST_PLAIN <= size < _BEYOND_PLAIN:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:]}E{exponent}"


def _digits(size: float, read: Callable[[str], float]) -> tuple[str, int]:
    """Return the fewest digits, at least two, that parse to the number, and its exponent."""
    text = ""
    for count in range(2, _MOST_DIGITS + 1):
        text = f"{size:.{count - 1}e}"
        if read(text) == size:
            break
    digits, _, exponent = text.partition("e")
    return digits.replace(".", "", 1), int(exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits.rstrip('0')}"
    integer_digits = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{integer_digits}.{digits[exponent + 1 :].rstrip('0') or '0'}"


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
    """Escape non-printable and non-ASCII bytes, as Kafka's Bytes.toString does."""
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
# ByteArrayDeserializer: Java prints an object's address, wirebroker the bytes.
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
    """Return a function from bytes to printed text; `null` is the text for null.

    As in Kafka's tool, an unknown class (`name`, with or without package) is reported, and bytes
    are printed unchanged.
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
