"""Records for the delivery service, for confluent-kafka, kafka-python and aiokafka.

Each function returns the keyword arguments of the client's method: `produce` of confluent-kafka,
`send` of the others. They only set headers, which any other client can set as well.

    producer.produce(**later("orders", b"a book", after="5m"))

    try:
        process(record)
    except PriceError as error:
        producer.produce(**retry(record, error, group="billing"))
"""

from __future__ import annotations

import datetime
from typing import Any, Final, TypeAlias

from wirebroker.base.dead_letter_headers import (
    DEAD_LETTER_PREFIX,
    dead_letter_headers,
    read_dead_letter_headers,
)
from wirebroker.delivery.model.header_table import RETRY_ATTEMPT
from wirebroker.delivery.model.rules import dead_letters_of, source_and_group

__all__ = ["dead_letter", "later", "retry"]

_Headers: TypeAlias = "list[tuple[str, bytes | None]]"
_Time: TypeAlias = "datetime.datetime | int | str"
_Duration: TypeAlias = "datetime.timedelta | int | str"
# Set again for each retry.
_OF_RETRIES: Final = frozenset({"retry-topic", "retry-attempts", "retry-backoff"})
# The text of an error may contain the whole record, and brokers refuse large records.
_MOST_CHARACTERS: Final = 1_000


def later(
    topic: str,
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: _Headers | None = None,
    at: _Time | None = None,
    after: _Duration | None = None,
    partition: int | None = None,
    delivery_id: str | None = None,
    expires_at: _Time | None = None,
    expires_after: _Duration | None = None,
    input_topic: str = "deliver",
) -> dict[str, Any]:
    """Return a record to be delivered later.

    A later record with the same `delivery_id` replaces it while it is pending. Without a value it
    cancels it.

    Args:
        topic: The topic that it is delivered to.
        value: As delivered, like `key` and `headers`.
        key: See `value`; it also selects the partition.
        headers: See `value`.
        at: The time: a datetime with a time zone, milliseconds since 1970, or ISO 8601.
        after: The time after now: a timedelta, milliseconds, or a text such as "5m".
        partition: The partition; None for the one that the key selects.
        delivery_id: For replacing and cancelling.
        expires_at: Like `at`: if it cannot be delivered by then, it becomes a dead letter.
        expires_after: Like `after`.
        input_topic: A topic of wirebroker.delivery.topics.

    Raises:
        ValueError: A datetime has no time zone.
    """
    fields: dict[str, object] = {
        "deliver-to": topic,
        "deliver-at": _time(at),
        "deliver-after": _duration(after),
        "deliver-partition": partition,
        "deliver-id": delivery_id,
        "expires-at": _time(expires_at),
        "expires-after": _duration(expires_after),
    }
    return {
        "topic": input_topic,
        "value": value,
        "key": key,
        "headers": [*(headers or ()), *_encoded(fields)],
    }


def retry(
    record: Any,
    error: object,
    *,
    group: str,
    retry_topic: str | None = None,
    attempts: int | None = None,
    backoff: str | None = None,
    input_topic: str = "retry",
) -> dict[str, Any]:
    """Return a record to be retried, with the error as the reason.

    It returns to TOPIC.retry.GROUP, which the group reads in addition to TOPIC. After the
    last attempt it goes to TOPIC.dead-letters.

    Args:
        record: A consumed record of one of the three clients.
        error: Why it could not be processed.
        group: The consumer's group.
        retry_topic: Another topic to return to. Every group of it reads the record.
        attempts: The number of retries; None for the number of listed pauses. Required with an
            exponential backoff.
        backoff: The pauses: "1s,10s,1m" or "exponential(1s,5m,0.2)"; None for 1 s, 10 s, 60 s.
        input_topic: A topic of wirebroker.delivery.retry.topics.
    """
    topic, _, _ = _place(record)
    source, _ = source_and_group(topic)
    fields: dict[str, object] = {
        "retry-topic": retry_topic or f"{source}.retry.{group}",
        "retry-attempts": attempts,
        "retry-backoff": backoff,
    }
    kept = [
        (name, value)
        for name, value in _headers(record)
        if name not in _OF_RETRIES and not name.startswith(DEAD_LETTER_PREFIX)
    ]
    return {
        "topic": input_topic,
        "value": _field(record, "value"),
        "key": _field(record, "key"),
        "headers": [*kept, *_encoded(fields), *_reason(record, error, group)],
    }


def dead_letter(record: Any, error: object, *, group: str) -> dict[str, Any]:
    """Return a record's dead letter, for TOPIC.dead-letters.

    Args:
        record: A consumed record of one of the three clients.
        error: Why it could not be processed.
        group: The consumer's group.
    """
    topic, _, _ = _origin(record)
    source, _ = source_and_group(topic)
    kept = [
        (name, value) for name, value in _headers(record) if not name.startswith(DEAD_LETTER_PREFIX)
    ]
    return {
        "topic": dead_letters_of(source),
        "value": _field(record, "value"),
        "key": _field(record, "key"),
        "headers": [*kept, *_reason(record, error, group)],
    }


def _reason(record: Any, error: object, group: str) -> list[tuple[str, bytes]]:
    topic, partition, offset = _origin(record)
    attempts = [value for name, value in _headers(record) if name == RETRY_ATTEMPT]
    attempt = (attempts[-1] or b"0").decode(errors="replace") if attempts else "0"
    return list(
        dead_letter_headers(
            topic=topic,
            partition=partition,
            offset=offset,
            group=group,
            delivery_count=(int(attempt) if attempt.isascii() and attempt.isdigit() else 0) + 1,
            message=(str(error) or type(error).__name__)[:_MOST_CHARACTERS],
        )
    )


def _origin(record: Any) -> tuple[str, int, int]:
    """Return where a record was first: its place, or the one that an earlier retry noted."""
    noted = read_dead_letter_headers(_headers(record))
    try:
        return noted["topic"], int(noted["partition"]), int(noted["offset"])
    except (KeyError, ValueError):
        return _place(record)


def _place(record: Any) -> tuple[str, int, int]:
    return _field(record, "topic"), _field(record, "partition"), _field(record, "offset")


def _headers(record: Any) -> _Headers:
    return list(_field(record, "headers") or ())


def _field(record: Any, name: str) -> Any:
    """Return a field, which is a method in confluent-kafka."""
    value = getattr(record, name)
    return value() if callable(value) else value


def _encoded(fields: dict[str, object]) -> list[tuple[str, bytes]]:
    return [(name, str(value).encode()) for name, value in fields.items() if value is not None]


def _time(time: _Time | None) -> int | str | None:
    if not isinstance(time, datetime.datetime):
        return time
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: use datetime.now(datetime.UTC)")
    return round(time.timestamp() * 1000)


def _duration(duration: _Duration | None) -> int | str | None:
    if isinstance(duration, datetime.timedelta):
        return duration // datetime.timedelta(milliseconds=1)
    return duration
