"""The fixed and variable-length types of which all messages consist (table: codecs/README.md).

A reader takes (view, position), returns (value, position after it), and raises MalformedFrameError.
It checks lengths and counts against the remaining bytes.

Source: Kafka's protocol guide, KIP-482; class ByteUtils for the limits, class Uuid for the text.
"""

from __future__ import annotations

import os
from base64 import b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.codecs.errors import MalformedFrameError

if TYPE_CHECKING:
    from collections.abc import Callable

Buffer: TypeAlias = bytes | bytearray | memoryview

ZERO_UUID: Final = bytes(16)

# Real messages have fewer than ten; 8 MB of empty ones would block the event loop for a second.
MAX_TAGGED_FIELDS: Final = 100

_UUID_ALPHABET: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)


def read_uvarint(view: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint below 2**32."""
    try:
        byte = view[position]
        if byte < 0x80:
            return byte, position + 1
        value = byte & 0x7F
        for index in (1, 2, 3, 4):
            byte = view[position + index]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                break
    except IndexError:
        raise MalformedFrameError("a varint ends beyond the frame") from None
    if byte >= 0x80 or value > 0xFFFFFFFF:
        raise MalformedFrameError("a varint is longer than 32 bits")
    return value, position + index + 1


def read_varint(view: Buffer, position: int) -> tuple[int, int]:
    """Read a zigzag varint of 32 bits."""
    if position < len(view):
        value = view[position]
        if value < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
    value, position = read_uvarint(view, position)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(view: Buffer, position: int) -> tuple[int, int]:
    """Read a zigzag varint of 64 bits."""
    value = 0
    try:
        for index in range(10):
            byte = view[position + index]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value >= 1 << 64:
                    break
                return (value >> 1) ^ -(value & 1), position + index + 1
    except IndexError:
        raise MalformedFrameError("a varint ends beyond the frame") from None
    raise MalformedFrameError("a varint is longer than 64 bits")


def _encode_uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SMALL_UVARINTS: Final = tuple(_encode_uvarint(value) for value in range(1024))


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint; `value` is not negative."""
    if 0 <= value < 1024:
        return _SMALL_UVARINTS[value]
    if 1 << 14 <= value < 1 << 21:  # most record lengths
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    assert 0 < value < 1 << 64, value
    return _encode_uvarint(value)


def varint(value: int) -> bytes:
    """Encode a zigzag varint or varlong."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def _text(view: Buffer, start: int, end: int) -> str:
    if end > len(view):
        raise MalformedFrameError(f"a string of {end - start} bytes ends beyond the frame")
    try:
        return str(view[start:end], "utf-8")
    except UnicodeDecodeError:
        raise MalformedFrameError("a string is not UTF-8") from None


def read_nullable_string(view: Buffer, position: int) -> tuple[str | None, int]:
    """Read a string; -1 means null."""
    start = position + 2
    if start > len(view):
        raise MalformedFrameError("a string's length ends beyond the frame")
    length = view[position] << 8 | view[position + 1]
    if length == 0xFFFF:
        return None, start
    if length >= 0x8000:
        raise MalformedFrameError("a string has a negative length")
    return _text(view, start, start + length), start + length


def read_string(view: Buffer, position: int) -> tuple[str, int]:
    """Read a non-null string."""
    value, position = read_nullable_string(view, position)
    if value is None:
        raise MalformedFrameError("a required string is null")
    return value, position


def read_compact_nullable_string(view: Buffer, position: int) -> tuple[str | None, int]:
    """Read a compact string; 0 means null."""
    length, start = read_uvarint(view, position)
    if length == 0:
        return None, start
    end = start + length - 1
    return _text(view, start, end), end


def read_compact_string(view: Buffer, position: int) -> tuple[str, int]:
    """Read a non-null compact string."""
    value, position = read_compact_nullable_string(view, position)
    if value is None:
        raise MalformedFrameError("a required string is null")
    return value, position


def read_array_count(
    view: Buffer, position: int, *, compact: bool, element_bytes: int
) -> tuple[int, int]:
    """Read an array's count, a uvarint if `compact`; -1 means null.

    The rest of the frame must have room for elements of at least `element_bytes`.
    """
    if compact:
        count, position = read_uvarint(view, position)
        count -= 1
    else:
        if position + 4 > len(view):
            raise MalformedFrameError("an array's count ends beyond the frame")
        count = int.from_bytes(view[position : position + 4], "big", signed=True)
        position += 4
    if count < -1 or count * element_bytes > len(view) - position:
        raise MalformedFrameError(f"an array of {count} elements ends beyond the frame")
    return count, position


def read_tagged_fields(view: Buffer, position: int) -> tuple[list[tuple[int, int, int]], int]:
    """Read tagged fields as (tag, position of its bytes, end of its bytes)."""
    count, position = read_uvarint(view, position)
    if count > MAX_TAGGED_FIELDS or count * 2 > len(view) - position:
        raise MalformedFrameError(f"{count} tagged fields in one place")
    fields: list[tuple[int, int, int]] = []
    for _ in range(count):
        tag, position = read_uvarint(view, position)
        length, position = read_uvarint(view, position)
        end = position + length
        if end > len(view):
            raise MalformedFrameError(f"tagged field {tag} ends beyond the frame")
        fields.append((tag, position, end))
        position = end
    return fields, position


def skip_counted_tagged_fields(view: Buffer, position: int, budget: int) -> tuple[int, int]:
    """Skip an array element's tagged fields; return the position and the remaining budget.

    All elements share the budget: a hundred tags on each would block the event loop for seconds.
    """
    if position < len(view) and view[position] == 0:
        return position + 1, budget
    fields, position = read_tagged_fields(view, position)
    budget -= len(fields)
    if budget < 0:
        raise MalformedFrameError("too many tagged fields")
    return position, budget


def skip_tagged_fields(view: Buffer, position: int) -> int:
    """Return the position after a section of tagged fields."""
    if position < len(view) and view[position] == 0:
        return position + 1
    return read_tagged_fields(view, position)[1]


def string(value: str) -> bytes:
    """Encode a string."""
    encoded = value.encode()
    assert len(encoded) < 0x8000, "too long for an int16 length"
    return len(encoded).to_bytes(2, "big") + encoded


def nullable_string(value: str | None) -> bytes:
    """Encode a string, or null."""
    return b"\xff\xff" if value is None else string(value)


def compact_string(value: str) -> bytes:
    """Encode a compact string."""
    encoded = value.encode()
    return uvarint(len(encoded) + 1) + encoded


def compact_nullable_string(value: str | None) -> bytes:
    """Encode a compact string, or null."""
    return b"\x00" if value is None else compact_string(value)


def uuid_text(value: bytes) -> str:
    """Return Kafka's text form of a uuid, 22 characters of base64url."""
    assert len(value) == 16, value
    return urlsafe_b64encode(value)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """Return the 16 bytes of a uuid in Kafka's text form.

    Raises:
        ValueError: It is not 22 characters of base64url.
    """
    stripped = text.removesuffix("==")
    if len(stripped) != 22 or not _UUID_ALPHABET.issuperset(stripped):
        raise ValueError(f"not a uuid of 22 base64url characters: {text[:40]!r}")
    return b64decode(stripped + "==", altchars=b"-_")


def random_uuid(random_bytes: Callable[[int], bytes] = os.urandom) -> bytes:
    """Return a random uuid (version 4).

    As in Kafka, its text does not start with a dash, which command lines would read as an option.
    """
    while True:
        drawn = bytearray(random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        # The text's first character has the top six bits; 62 is the dash.
        if drawn[0] >> 2 != 62:
            return bytes(drawn)
