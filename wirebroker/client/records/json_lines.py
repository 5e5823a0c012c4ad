"""Records as lines of JSON."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, cast

from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.batch import BareRecord
    from wirebroker.codecs.records.record import Headers, Record


# Making an encoder takes as long as encoding a short record.
_AS_UTF8: Final = json.JSONEncoder(ensure_ascii=False)
_AS_ASCII: Final = json.JSONEncoder()
# Base64 of a piece has no padding unless it is the last one.
_PIECE_BYTES: Final = 48 << 10
_EXAMPLE: Final = '{"key": "a", "value": "b"}'


def json_line_of(topic_partition: TopicPartition, record: Record) -> bytes:
    """Return a record as JSON; bytes that are not UTF-8 become `{"base64": "…"}`."""
    row = {
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_value_of(record.key),
        "value": json_value_of(record.value),
        "headers": json_headers_of(record.headers),
    }
    return _encoder_of(record.headers).encode(row).encode() + b"\n"


def _encoder_of(headers: Headers) -> json.JSONEncoder:
    # A header key that is not UTF-8 has surrogates, which need escapes.
    return _AS_UTF8 if all(name.isprintable() for name, _ in headers) else _AS_ASCII


def json_line_pieces(topic_partition: TopicPartition, record: Record) -> Iterator[bytes]:
    """Yield the same as `json_line_of` in pieces, to avoid a second copy of a large record."""
    headers = record.headers
    yield _AS_UTF8.encode(
        {
            "topic": topic_partition.topic,
            "partition": topic_partition.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
        }
    ).encode()[:-1]
    encoder = _encoder_of(headers)
    yield b', "key": '
    yield from _value_pieces(record.key, encoder)
    yield b', "value": '
    yield from _value_pieces(record.value, encoder)
    yield b', "headers": '
    yield from json_headers_pieces(headers, encoder)
    yield b"}\n"


def json_headers_pieces(headers: Headers, encoder: json.JSONEncoder = _AS_ASCII) -> Iterator[bytes]:
    """Yield headers as JSON, in pieces."""
    before = b"["
    for name, value in headers:
        yield before + b'{"key": ' + encoder.encode(name).encode() + b', "value": '
        yield from _value_pieces(value, encoder)
        yield b"}"
        before = b", "
    yield b"]" if headers else b"[]"


def _value_pieces(data: bytes | None, encoder: json.JSONEncoder) -> Iterator[bytes]:
    if data is None:
        yield b"null"
    elif is_utf8(data):
        yield b'"'
        for text in text_pieces(data):
            yield encoder.encode(text)[1:-1].encode()
        yield b'"'
    else:
        yield from base64_pieces(data)


def is_utf8(data: bytes) -> bool:
    """Return whether data is UTF-8, decoding a piece at a time."""
    try:
        for _ in text_pieces(data):
            pass
    except UnicodeDecodeError:
        return False
    return True


def text_pieces(data: bytes) -> Iterator[str]:
    """Yield UTF-8 as text in pieces.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    start = 0
    while start < len(data):
        end = start + _PIECE_BYTES
        # A character has at most three continuation bytes.
        while end - start > _PIECE_BYTES - 3 and data[end : end + 1] and data[end] >> 6 == 0b10:
            end -= 1
        yield data[start:end].decode()
        start = end


def base64_pieces(data: bytes) -> Iterator[bytes]:
    """Yield the JSON of bytes that are not UTF-8."""
    yield b'{"base64": "'
    for start in range(0, len(data), _PIECE_BYTES):
        yield base64.b64encode(data[start : start + _PIECE_BYTES])
    yield b'"}'


def record_line(record: BareRecord) -> str:
    """Return a record as ASCII JSON for `produce --json`."""
    key, value, headers = record
    row = {"key": json_value_of(key), "value": json_value_of(value)}
    rows = json_headers_of(headers)
    return _AS_ASCII.encode({**row, "headers": rows} if rows else row)


def record_of_line(line: bytes | str) -> BareRecord:
    """Return the key, value and headers of a record as JSON; other fields are not used.

    Raises:
        ValueError: It has another form.
    """
    parsed = parse_json(line)
    if not isinstance(parsed, dict):
        raise ValueError(f"it is not an object such as {_EXAMPLE}")  # noqa: TRY004
    row = cast("dict[str, Any]", parsed)
    return (
        _bytes_of(row.get("key"), "key"),
        _bytes_of(row.get("value"), "value"),
        headers_of_json(row.get("headers")),
    )


def json_headers_of(headers: Headers) -> list[dict[str, Any]]:
    """Return headers as values of JSON."""
    return [{"key": name, "value": json_value_of(value)} for name, value in headers]


def headers_of_json(rows: Any) -> list[tuple[str, bytes | None]]:
    """Return headers from values of JSON; None for no headers.

    Raises:
        ValueError: They have another form.
    """
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise ValueError(f"headers are a list such as [{_EXAMPLE}]")  # noqa: TRY004
    headers: list[tuple[str, bytes | None]] = []
    for item in cast("Sequence[Any]", rows):
        row = _object(item)
        name = row.get("key")
        if not isinstance(name, str):
            raise ValueError(f"a header is an object such as {_EXAMPLE}")  # noqa: TRY004
        _encoded(name, "a header's key")
        headers.append((name, _bytes_of(row.get("value"), "a header's value")))
    return headers


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _bytes_of(value: Any, noun: str) -> bytes | None:
    """Return the bytes of text, `{"base64": "…"}` or None."""
    if value is None:
        return None
    if isinstance(value, str):
        return _encoded(value, noun)
    encoded = _object(value).get("base64")
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:
            raise ValueError(f"the base64 of {noun} is not valid") from None
    raise ValueError(f'{noun} is not text, null, or bytes as {{"base64": "…"}}')


def _encoded(text: str, noun: str) -> bytes:
    try:
        # Surrogate escapes are bytes that are not UTF-8.
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{noun} has a lone surrogate, which is not UTF-8") from None


def json_value_of(data: bytes | None) -> Any:
    """Return bytes as a value of JSON: text, `{"base64": "…"}` or None."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
