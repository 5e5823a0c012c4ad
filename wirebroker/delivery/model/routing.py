"""What becomes of an input record: a pending entry, a cancellation, or a dead letter.

Retries count their attempts in `retry-attempt`: the record that comes back the first time has 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.delivery.model.dead_letter import last_error
from wirebroker.delivery.model.entry import EntryCommand, EntryKind, PendingEntry
from wirebroker.delivery.model.header_table import (
    DELIVER_PREFIX,
    ORIGINAL_TIMESTAMP,
    RETRY_ATTEMPT,
    HeaderError,
    read_headers,
    with_original_timestamp,
)
from wirebroker.delivery.model.retry_policy import DEFAULT_BACKOFF
from wirebroker.delivery.model.rules import dead_letters_of

if TYPE_CHECKING:
    from wirebroker.codecs.records.record import Headers
    from wirebroker.delivery.model.records import ReceivedRecord
    from wirebroker.delivery.model.rules import DeliveryRules


def route(record: ReceivedRecord, rules: DeliveryRules, now_ms: int) -> PendingEntry | EntryCommand:
    """Return what to store for a record.

    Raises:
        HeaderError: It becomes a dead letter with this reason.
    """
    values = read_headers(record.headers)
    if record.topic in rules.retry_topics:
        return _retry(record, values, rules, now_ms)
    delivery_id = values.get("deliver-id")
    if delivery_id is not None and record.value is None:
        return EntryCommand(record.name, EntryKind.CANCEL, delivery_id, None)
    return _delivery(record, values, rules, now_ms)


def _delivery(
    record: ReceivedRecord, values: dict[str, Any], rules: DeliveryRules, now_ms: int
) -> PendingEntry:
    if "deliver-to" not in values:
        raise HeaderError("deliver-to is missing: it names the topic")
    if "deliver-at" in values and "deliver-after" in values:
        raise HeaderError("deliver-at and deliver-after exclude each other")
    rules.check_target(values["deliver-to"])
    due_ms = values.get("deliver-at", record.timestamp_ms + values.get("deliver-after", 0))
    expires_ms = _checked_expiry(record, values, due_ms)
    _check_delay(due_ms, rules, now_ms)
    return PendingEntry(
        name=record.name,
        due_ms=due_ms,
        target=values["deliver-to"],
        partition=values.get("deliver-partition"),
        delivery_id=values.get("deliver-id"),
        expires_ms=expires_ms,
        attempt=0,
        dead_letters=dead_letters_of(record.topic),
        key=record.key,
        value=record.value,
        headers=_kept_headers(record),
    )


def _retry(
    record: ReceivedRecord, values: dict[str, Any], rules: DeliveryRules, now_ms: int
) -> PendingEntry:
    if "retry-topic" not in values:
        raise HeaderError("retry-topic is missing: it names the topic to return to")
    target = values["retry-topic"]
    rules.check_target(target)
    backoff = values.get("retry-backoff", DEFAULT_BACKOFF)
    most = values.get("retry-attempts", backoff.length)
    if most is None:
        raise HeaderError("retry-attempts is missing: an exponential retry-backoff needs it")
    if most > rules.max_attempts:
        raise HeaderError(f"retry-attempts is over {rules.max_attempts}")
    done = values.get(RETRY_ATTEMPT, 0)
    if done >= most:
        error = last_error(record.headers)
        raise HeaderError(f"{most} retries failed{': ' if error else ''}{error}")
    due_ms = record.timestamp_ms + backoff.pause_ms(done + 1, record.name.encode())
    expires_ms = _checked_expiry(record, values, due_ms)
    _check_delay(due_ms, rules, now_ms)
    return PendingEntry(
        name=record.name,
        due_ms=due_ms,
        target=target,
        partition=None,
        delivery_id=None,
        expires_ms=expires_ms,
        attempt=done + 1,
        dead_letters=rules.retry_dead_letters(target, record.topic),
        key=record.key,
        value=record.value,
        headers=_retried_headers(record, done + 1),
    )


def _retried_headers(record: ReceivedRecord, attempt: int) -> Headers:
    kept = [(name, value) for name, value in _kept_headers(record) if name != RETRY_ATTEMPT]
    return (*kept, (RETRY_ATTEMPT, b"%d" % attempt))


def _kept_headers(record: ReceivedRecord) -> Headers:
    """Return the headers to deliver."""
    kept = tuple(
        (name, value)
        for name, value in record.headers
        if name == ORIGINAL_TIMESTAMP or not name.startswith(DELIVER_PREFIX)
    )
    return with_original_timestamp(kept, record.timestamp_ms)


def _checked_expiry(record: ReceivedRecord, values: dict[str, Any], due_ms: int) -> int | None:
    if "expires-at" in values and "expires-after" in values:
        raise HeaderError("expires-at and expires-after exclude each other")
    expires_ms: int | None = values.get("expires-at")
    if "expires-after" in values:
        expires_ms = record.timestamp_ms + values["expires-after"]
    if expires_ms is not None and expires_ms < due_ms:
        raise HeaderError("expired: it expires before it is due")
    return expires_ms


def _check_delay(due_ms: int, rules: DeliveryRules, now_ms: int) -> None:
    if due_ms - now_ms > rules.max_delay_ms:
        raise HeaderError(
            f"the due time {due_ms} is more than {rules.max_delay_ms} ms ahead"
            " (wirebroker.delivery.max.delay.ms)"
        )
