"""JSON in which nothing has two meanings, from peers that nobody has authenticated (RFC 8259).

Refused: bytes that are not UTF-8, a byte order mark, a name that appears twice in an object,
NaN and Infinity, control characters within a text, and more values than any token has.

Source: jose4j's JsonUtil and json-simple, by which Kafka reads tokens; they refuse names that
appear twice, too.
"""

from __future__ import annotations

from typing import Any, Final, cast

from wirebroker.codecs.json_text import parse_json

# Parsing takes 0.3 us for each; tokens have some dozens.
_MOST_VALUES: Final = 10_000


def strict_object(data: bytes) -> dict[str, Any]:
    """Return the object that a JSON text is.

    Raises:
        ValueError: It is another JSON value, or not JSON, or one of what is refused above.
    """
    if data.count(b",") + data.count(b":") + data.count(b"[") > _MOST_VALUES:
        raise ValueError("it has too many values")
    found = parse_json(data.decode(), fields=_object)
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - a wrong text, not a wrong type
    return cast("dict[str, Any]", found)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice in an object")
    return found
