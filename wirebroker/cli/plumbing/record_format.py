r"""Output formats of `consume`: a format string as in kcat, or lines of JSON.

- %s value, %k key, %t topic, %p partition, %o offset, %T timestamp in ms, %h headers
- %S and %K lengths of value and key, -1 for none, %% a percent sign
- \n \t \r \0 \\ as in C
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from wirebroker.client.records.json_lines import json_line_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

    Writer: TypeAlias = Callable[[TopicPartition, Record], bytes]

_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_PIECE: Final = re.compile(r"%(.)|\\(.)|([^%\\]+)|(.)", re.DOTALL)

_FIELDS: Final[dict[str, Writer]] = {
    "s": lambda _, record: record.value or b"",
    "k": lambda _, record: record.key or b"",
    "S": lambda _, record: _length(record.value),
    "K": lambda _, record: _length(record.key),
    "t": lambda place, _: place.topic.encode(),
    "p": lambda place, _: b"%d" % place.partition,
    "o": lambda _, record: b"%d" % record.offset,
    "T": lambda _, record: b"%d" % record.timestamp,
    "h": lambda _, record: b",".join(
        b"%b=%b" % (name.encode("utf-8", "surrogateescape"), value or b"")
        for name, value in record.headers
    ),
    "%": lambda _, __: b"%",
}


def writer_of(text: str) -> Writer:
    """Return a function that formats records; raise ValueError for unknown fields or escapes."""
    pieces: list[Writer] = []
    for field, escape, plain, lone_sign in _PIECE.findall(text):
        if field:
            if field not in _FIELDS:
                raise ValueError(f"%{field} is unknown in a format; use {_known()}")
            pieces.append(_FIELDS[field])
        elif lone_sign:
            raise ValueError(f"the format ends with a single {lone_sign}")
        elif escape and escape not in _ESCAPES:
            raise ValueError(f"\\{escape} is unknown in a format")
        else:
            pieces.append(_constant(_ESCAPES[escape] if escape else plain.encode()))
    return lambda topic_partition, record: b"".join(
        [piece(topic_partition, record) for piece in pieces]
    )


def record_writer(form: str | None, *, as_json: bool) -> Writer:
    """Return the function that the flags --format and --json choose, or raise click.UsageError."""
    if form is not None and as_json:
        raise click.UsageError("give one of --format and --json")
    if as_json:
        return json_line_of
    try:
        return writer_of(r"%s\n" if form is None else form)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def text_of(text: str) -> bytes:
    """Return text with escapes as bytes; raise ValueError for unknown ones."""
    pieces: list[bytes] = []
    for plain, escape in re.findall(r"([^\\]+)|\\(.?)", text, re.DOTALL):
        if not plain and escape not in _ESCAPES:
            raise ValueError(f"\\{escape} is unknown; write \\\\ for a backslash")
        pieces.append(plain.encode() if plain else _ESCAPES[escape])
    return b"".join(pieces)


def _known() -> str:
    return " ".join(f"%{field}" for field in _FIELDS)


def _constant(data: bytes) -> Writer:
    return lambda _, __: data


def _length(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))
