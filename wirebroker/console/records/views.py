"""Keys and values as text: JSON, text, or hexadecimal. The caller escapes them for HTML."""

from __future__ import annotations

import json
from typing import Final, Literal

from wirebroker.codecs.json_text import parse_json

Kind = Literal["null", "json", "text", "hex"]

# Longer values are shown up to here.
_MOST_TEXT_BYTES: Final = 1 << 20
_MOST_HEX_BYTES: Final = 64 << 10
_MOST_JSON_CHARACTERS: Final = 4 << 20
_ROW: Final = 16
_JSON_BEGINS: Final = (b"{", b"[")
_PRINTED: Final = frozenset("\t\n\r")


def json_view(data: bytes) -> str | None:
    """Return JSON with indents, or None if the data is other, larger or nested too deeply."""
    if len(data) > _MOST_TEXT_BYTES:
        return None
    try:
        text = json.dumps(parse_json(data), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    # A lone surrogate, which JSON can escape, has no UTF-8.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MOST_JSON_CHARACTERS else None


def text_view(data: bytes) -> str:
    r"""Return UTF-8 text; other bytes and control characters are shown as `\x1b`."""
    text = data[:_MOST_TEXT_BYTES].decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in _PRINTED else _escaped(character)
        for character in text
    )


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


def best_view(data: bytes | None) -> tuple[Kind, str]:
    """Return the view that shows most, and its kind."""
    if data is None:
        return "null", ""
    if data.lstrip(b" \t\r\n")[:1] in _JSON_BEGINS and (view := json_view(data)) is not None:
        return "json", view
    return ("text", text_view(data)) if _is_text(data) else ("hex", hex_view(data))


def _is_text(data: bytes) -> bool:
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
