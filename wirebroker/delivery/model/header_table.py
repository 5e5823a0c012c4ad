"""The table of headers that the service reads, and their parsing.

A name that occurs twice has its last value, as in Java's `lastHeader`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from wirebroker.delivery.model.durations import parse_duration, parse_time
from wirebroker.delivery.model.retry_policy import parse_backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.records.record import Headers

DELIVER_PREFIX: Final = "deliver-"
DELIVER_TO: Final = "deliver-to"
DELIVER_ID: Final = "deliver-id"
ORIGINAL_TIMESTAMP: Final = "deliver-original-timestamp"
RETRY_ATTEMPT: Final = "retry-attempt"

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)
# An id is indexed.
_MOST_ID_BYTES: Final = 256
_SHOWN_CHARACTERS: Final = 40


class HeaderError(ValueError):
    """A header cannot be used; its message is the reason in the dead letter."""


def is_topic_name(text: str) -> bool:
    """Return whether a topic may have this name."""
    return bool(_TOPIC_NAME.fullmatch(text)) and text not in {".", ".."}


def _topic(text: str) -> str:
    if not is_topic_name(text):
        raise ValueError(f"{text[:_SHOWN_CHARACTERS]!r} is not a topic name")
    return text


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:_SHOWN_CHARACTERS]!r} is not a number from 0 to 999999999")
    return int(text)


def _identity(text: str) -> str:
    if not 0 < len(text.encode()) <= _MOST_ID_BYTES:
        raise ValueError(f"an id has 1 to {_MOST_ID_BYTES} bytes")
    return text


# Header -> parser of its text.
HEADER_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    DELIVER_TO: _topic,
    "deliver-at": parse_time,
    "deliver-after": parse_duration,
    "deliver-partition": _number,
    DELIVER_ID: _identity,
    "expires-at": parse_time,
    "expires-after": parse_duration,
    "retry-topic": _topic,
    "retry-attempts": _number,
    "retry-backoff": parse_backoff,
    RETRY_ATTEMPT: _number,
}
_IGNORED: Final = frozenset({ORIGINAL_TIMESTAMP})


def read_headers(headers: Headers) -> dict[str, Any]:
    """Return the parsed values of the headers in the table.

    Raises:
        HeaderError: A value cannot be parsed, or a header begins with `deliver-` and is unknown.
    """
    values: dict[str, Any] = {}
    for name, content in headers:
        parser = HEADER_PARSERS.get(name)
        if parser is None:
            if name.startswith(DELIVER_PREFIX) and name not in _IGNORED:
                raise HeaderError(f"there is no header {name[:_SHOWN_CHARACTERS]}")
            continue
        if content is None:
            raise HeaderError(f"{name} has no value")
        try:
            values[name] = parser(content.decode())
        except UnicodeDecodeError:
            raise HeaderError(f"{name} is not UTF-8") from None
        except ValueError as error:
            raise HeaderError(f"{name}: {error}") from None
    return values


def with_original_timestamp(headers: Headers, timestamp_ms: int) -> Headers:
    """Return the headers with `deliver-original-timestamp`; the first one stays."""
    if any(name == ORIGINAL_TIMESTAMP for name, _ in headers):
        return headers
    return (*headers, (ORIGINAL_TIMESTAMP, b"%d" % timestamp_ms))
