"""JSON without ambiguities, for input of unauthenticated clients (RFC 8259).

Refused: bytes that are not UTF-8, a byte order mark, duplicate names, NaN and Infinity, control
characters in strings, and more values than any token has.

Source: jose4j's JsonUtil and json-simple, by which Kafka reads tokens.
"""

from __future__ import annotations

from typing import Any, Final, cast

from wirebroker.codecs.json_text import parse_json

# Parsing takes 0.3 us each; tokens have some dozens.
_MOST_VALUES: Final = 10_000


def strict_object(data: bytes) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        ValueError: The text is not an object, not JSON, or ambiguous.
    """
    if data.count(b",") + data.count(b":") + data.count(b"[") > _MOST_VALUES:
        raise ValueError("it has too many values")
    parsed = parse_json(data.decode(), fields=_object)
    if not isinstance(parsed, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - a wrong text, not a wrong type
    return cast("dict[str, Any]", parsed)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name appears twice in an object")
    return fields
