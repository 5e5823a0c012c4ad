"""Keys and values as text: JSON, text, or hexadecimal. The caller escapes them for HTML."""

from __future__ import annotations

import json
from typing import Any, Final

from wirebroker.codecs.json_text import parse_json

# Longer values are shown up to here.
_MOST_TEXT_BYTES: Final = 1 << 20
_MOST_HEX_BYTES: Final = 64 << 10
_MOST_JSON_CHARACTERS: Final = 4 << 20
_MOST_JSON_DEPTH: Final = 64
_ROW: Final = 16
_PRINTED: Final = frozenset("\t\n\r")


def json_view(data: bytes) -> str | None:
    """Return JSON with indents, or None if the data is other, larger or nested too deeply."""
    if len(data) > _MOST_TEXT_BYTES:
        return None
    try:
        document = parse_json(data)
    except ValueError:
        return None
    if _is_too_deep(document):
        return None
    # Indents make deep JSON many times larger, so the text is built only up to the limit.
    parts: list[str] = []
    length = 0
    for part in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(document):
        length += len(part)
        if length > _MOST_JSON_CHARACTERS:
            return None
        parts.append(part)
    # A lone surrogate, which JSON can escape, has no UTF-8.
    return "".join(parts).encode("utf-8", "replace").decode()


def _is_too_deep(document: Any) -> bool:
    level = [document]
    for _ in range(_MOST_JSON_DEPTH + 1):
        inner: list[Any] = []
        for value in level:
            if value.__class__ is dict:
                inner += value.values()
            elif value.__class__ is list:
                inner += value
        if not inner:
            return False
        level = inner
    return True


def text_view(data: bytes) -> str:
    r"""Return UTF-8 text; other bytes and control characters are shown as `\x1b`."""
    text = data[:_MOST_TEXT_BYTES].decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in _PRINTED else _escaped(character)
        for character in text
    )


def name_view(name: str) -> str:
    """Return a header's name as text; its bytes that are not UTF-8 are surrogate escapes."""
    return text_view(name.encode("utf-8", "surrogateescape"))


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def hex_view(data: bytes) -> str:
    """Return rows of offset, 16 bytes and their ASCII characters."""
    rows: list[str] = []
    for position in range(0, min(len(data), _MOST_HEX_BYTES), _ROW):
        row = data[position : position + _ROW]
        characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{position:08x}  {row.hex(' '):<47}  {characters}")
    if len(data) > _MOST_HEX_BYTES:
        rows.append(f"… {len(data) - _MOST_HEX_BYTES:,} more bytes")
    return "\n".join(rows)


def is_text(data: bytes) -> bool:
    """Return whether data is UTF-8 almost without control characters; a cut end may be invalid."""
    sample = data[:4096]
    try:
        text = sample.decode()
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and error.start >= len(sample) - 3
        if not is_cut or error.start == 0:
            return False
        text = sample[: error.start].decode()
    strange = sum(not character.isprintable() and character not in _PRINTED for character in text)
    return strange * 20 <= len(text)
