"""Dead letters of the service: records that it cannot deliver, with the headers of share groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.dead_letter_headers import (
    DEAD_LETTER_PREFIX,
    dead_letter_headers,
    read_dead_letter_headers,
)
from wirebroker.delivery.model.header_table import (
    DELIVER_TO,
    HeaderError,
    is_topic_name,
    read_headers,
    with_original_timestamp,
)
from wirebroker.delivery.model.records import OutputRecord
from wirebroker.delivery.model.rules import DEAD_LETTERS, dead_letters_of, source_and_group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.codecs.records.record import Headers
    from wirebroker.delivery.model.entry import PendingEntry
    from wirebroker.delivery.model.records import ReceivedRecord
    from wirebroker.delivery.model.rules import DeliveryRules


def rejected(record: ReceivedRecord, reason: str, rules: DeliveryRules) -> OutputRecord:
    """Return the dead letter of an input record.

    That of a retried record names the record that its group could not process, as far as its
    headers do. That of a scheduled one notes when it was sent, for a redrive.
    """
    topic, place, group = _origin_of_input(record, rules)
    own_headers = record.headers
    if record.topic in rules.deliver_topics:
        own_headers = with_original_timestamp(own_headers, record.timestamp_ms)
    headers = dead_letter_headers(
        topic=place[0],
        partition=place[1],
        offset=place[2],
        group=group,
        delivery_count=_attempt(record.headers) + 1,
        message=reason,
    )
    return OutputRecord(
        topic, None, record.key, record.value, _with(own_headers, headers), record.name
    )


def undeliverable(entry: PendingEntry, reason: str, rules: DeliveryRules) -> OutputRecord:
    """Return the dead letter of a pending entry.

    That of a scheduled record has its `deliver-to` and `deliver-partition` again, so that it can be
    redriven to the input topic.
    """
    place = _place_of_entry(entry.name, rules)
    group = rules.group
    if entry.attempt:
        place = _told_place(entry.headers, rules) or place
        group = source_and_group(entry.target)[1] or group
        own_headers = entry.headers
    else:
        own_headers = (*entry.headers, *_place_headers(entry))
    headers = dead_letter_headers(
        topic=place[0],
        partition=place[1],
        offset=place[2],
        group=group,
        delivery_count=entry.attempt,
        message=reason,
    )
    return OutputRecord(
        entry.dead_letters, None, entry.key, entry.value, _with(own_headers, headers), entry.name
    )


def _place_headers(entry: PendingEntry) -> Headers:
    target = (DELIVER_TO, entry.target.encode())
    if entry.partition is None:
        return (target,)
    return target, ("deliver-partition", b"%d" % entry.partition)


def unreadable(name: str, value: bytes, reason: str, rules: DeliveryRules) -> OutputRecord:
    """Return the dead letter of an entry that cannot be read: its name and value as they are."""
    topic = rules.input_topics[0]
    place = _place_of_entry(name, rules)
    headers = dead_letter_headers(
        topic=place[0],
        partition=place[1],
        offset=place[2],
        group=rules.group,
        delivery_count=0,
        message=reason,
    )
    return OutputRecord(dead_letters_of(topic), None, name.encode(), value, headers, name)


def without_content(letter: OutputRecord, reason: str) -> OutputRecord:
    """Return a dead letter with its `__dlq.errors.*` headers alone.

    It replaces one that the broker refused. The record itself is in the input topic.
    """
    told = read_dead_letter_headers(letter.headers)
    headers = dead_letter_headers(
        topic=told["topic"],
        partition=int(told["partition"]),
        offset=int(told["offset"]),
        group=told["group"],
        delivery_count=int(told["delivery.count"]),
        message=f"{told['message']}; key, value and headers are left out: {reason}",
    )
    return letter._replace(topic=input_dead_letters(letter), key=None, value=None, headers=headers)


def input_dead_letters(letter: OutputRecord) -> str:
    """Return the dead-letter topic of the topic from which the service read the record."""
    return dead_letters_of(_input_topic(letter))


def _input_topic(letter: OutputRecord) -> str:
    """Return the input topic of the record that became a dead letter."""
    try:
        return place_in(letter.cause)[0]
    except ValueError:  # of an unreadable entry
        return letter.topic.removesuffix(DEAD_LETTERS)


def place_in(name: str) -> tuple[str, int, int]:
    """Return the topic, partition and offset in an entry's name.

    Raises:
        ValueError: Other software wrote the entry, with another name.
    """
    topic, partition, offset, _ = name.rsplit("/", 3)
    return topic, int(partition), int(offset)


def received_ms(name: str) -> int:
    """Return the timestamp of the input record in an entry's name; 0 if it has none."""
    try:
        return int(name.rpartition("/")[2])
    except ValueError:  # other software wrote the entry
        return 0


def _place_of_entry(name: str, rules: DeliveryRules) -> tuple[str, int, int]:
    """Return the place in an entry's name, or the start of the first input topic."""
    try:
        return place_in(name)
    except ValueError:
        return rules.input_topics[0], 0, 0


def last_error(headers: Headers) -> str:
    """Return the reason that a consumer gave when it sent a record to be retried, or ""."""
    return read_dead_letter_headers(headers).get("message", "")


def _origin_of_input(
    record: ReceivedRecord, rules: DeliveryRules
) -> tuple[str, tuple[str, int, int], str]:
    """Return the dead-letter topic, the place and the group."""
    place = (record.topic, record.partition, record.offset)
    topic = dead_letters_of(record.topic)
    if record.topic not in rules.retry_topics:
        return topic, place, rules.group
    retry_topic = _last(record.headers, "retry-topic")
    if not is_topic_name(retry_topic):
        return topic, place, rules.group
    return (
        rules.retry_dead_letters(retry_topic, record.topic),
        _told_place(record.headers, rules) or place,
        source_and_group(retry_topic)[1] or rules.group,
    )


def _told_place(headers: Headers, rules: DeliveryRules) -> tuple[str, int, int] | None:
    """Return the place that a consumer gave, if it is complete and its topic is a target.

    A redrive writes to this topic with the rights of an operator.
    """
    told = read_dead_letter_headers(headers)
    partition, offset = told.get("partition", ""), told.get("offset", "")
    is_complete = told.get("topic") and partition.isascii() and offset.isascii()
    if not (is_complete and partition.isdigit() and offset.isdigit() and len(offset) <= 19):
        return None
    if not (is_topic_name(told["topic"]) and rules.is_target(told["topic"])):
        return None
    return told["topic"], int(partition[:10]), int(offset)


def _last(headers: Headers, name: str) -> str:
    values = [value for header, value in headers if header == name]
    return (values[-1] or b"").decode(errors="replace") if values else ""


def _attempt(headers: Headers) -> int:
    try:
        return int(read_headers(headers).get("retry-attempt", 0))
    except HeaderError:
        return 0


def _with(headers: Headers, added: Iterable[tuple[str, bytes]]) -> Headers:
    return (
        *((name, value) for name, value in headers if not name.startswith(DEAD_LETTER_PREFIX)),
        *added,
    )
