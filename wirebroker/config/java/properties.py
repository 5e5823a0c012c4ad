r"""Java properties: the format of Kafka settings files.

    # a comment
    log.dirs=/var/lib/kafka,\
        /mnt/kafka

Source: java.util.Properties.load (escapes, continuation lines, three separators).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# A key ends at the first =, : or blank without a backslash.
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*")
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_BYTE_ORDER_MARK = "\xef\xbb\xbf"  # UTF-8, read as Latin-1
_BINARY = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
# JSON, XML, INI, YAML; no config name begins with these.
_FOREIGN_BEGIN = re.compile(r"""[{}\[\]<>"',`*&|]|-(?:--)?(?=\s|$)|%YAML""")
_FOREIGN_KINDS: Final = {
    "{": "a JSON file",
    "[": "a JSON or INI file",
    "<": "an XML file",
    "-": "a YAML file",
    "%": "a YAML file",
}
# `kafka:` and an indented `node.id: 1`: Java would ignore the nesting.
_NESTED = re.compile(
    r"^([ \t]*)[\w.\-]+[ \t]*:[ \t]*\r?\n(?:[ \t]*\r?\n)*\1[ \t]+[^\s#!]", re.MULTILINE
)
# An escaped line end includes the leading blanks of the next line.
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|(?:\r\n|[\r\n])[ \t\f]*|.?)", re.DOTALL)


def foreign_kind(text: str) -> str | None:
    """Return the kind of a file that is not properties, with an article, or None.

    Java accepts any bytes as properties, and would find none of the intended settings.
    """
    if _BINARY.search(text):
        return "a binary file"
    if text.startswith(_BYTE_ORDER_MARK):
        return "a text that begins with a byte order mark"
    for line in _logical_lines(text):
        if match := _FOREIGN_BEGIN.match(line):
            return _FOREIGN_KINDS.get(match.group()[0], "another kind of file")
    return "a YAML file" if _NESTED.search(text) else None


def parse_properties(text: str) -> dict[str, str]:
    r"""Parse a properties file; for a repeated key the last value counts.

    Raises:
        ValueError: A \u escape lacks four hexadecimal digits.
    """
    settings: dict[str, str] = {}
    for line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None, "the pattern matches the empty text"
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None, "the pattern matches the empty text"
        settings[_unescape(key.group())] = _unescape(line[separator.end() :])
    return settings


def parse_value(text: str) -> str:
    r"""Parse one value, which includes unescaped line ends.

    Raises:
        ValueError: As parse_properties.
    """
    return _unescape(text.lstrip(" \t\f"))


def _logical_lines(text: str) -> Iterator[str]:
    joined = ""
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(" \t\f")
        # A continuation line is never a comment.
        if not joined and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
            continue
        yield joined + line
        joined = ""
    if joined:
        yield joined


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    escape = match.group(1)
    if escape == "u":
        raise ValueError("a \\u escape needs four hexadecimal digits")
    if escape[:1] in {"\r", "\n"}:
        return ""
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)
