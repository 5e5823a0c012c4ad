"""Headers of records that librdkafka received."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from confluent_kafka import Message

    from wirebroker.codecs.records.record import Headers


def headers_of(message: Message) -> Headers | None:
    """Return a record's headers, or None if a name is not UTF-8."""
    try:
        headers = message.headers()
    except (SystemError, UnicodeDecodeError):
        return None
    return cast("Headers", tuple(headers or ()))
