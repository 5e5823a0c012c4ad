"""A dead letter as read from its topic, and filters of dead letters.

Its headers name the record (`__dlq.errors.*`); the rest is the record itself. A share group that
does not copy records writes the headers alone (`errors.deadletterqueue.copy.record.enable`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.dead_letter_headers import DEAD_LETTER_PREFIX, read_dead_letter_headers
from wirebroker.delivery.model.header_table import (
    DELIVER_ID,
    DELIVER_TO,
    RETRY_ATTEMPT,
    is_topic_name,
)
from wirebroker.delivery.model.rules import INTERNAL_PREFIX

if TYPE_CHECKING:
    from wirebroker.codecs.records.record import Headers

# Headers of the dead letters of pipelines (spark_it/pipelines).
_OF_PIPELINES: Final = frozenset({"reason", "job"})


class LetterRecord(NamedTuple):
    """A record of a dead-letter topic; the timestamp is in milliseconds since 1970."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def fields(self) -> dict[str, str]:
        """The headers of the dead letter, without their prefix."""
        return read_dead_letter_headers(self.headers)

    @property
    def is_letter(self) -> bool:
        """Whether it is a dead letter, not an ordinary record."""
        names = {name for name, _ in self.headers}
        return names >= _OF_PIPELINES or any(name.startswith(DEAD_LETTER_PREFIX) for name in names)

    @property
    def named_target(self) -> str | None:
        """The topic that it names, if records may be sent there."""
        topic = self.fields.get("topic", "")
        return topic if is_topic_name(topic) and not topic.startswith(INTERNAL_PREFIX) else None

    @property
    def has_content(self) -> bool:
        """Whether it contains the record, not only its place."""
        return (
            self.key is not None
            or self.value is not None
            or any(not name.startswith(DEAD_LETTER_PREFIX) for name, _ in self.headers)
        )

    def row(self) -> dict[str, Any]:
        """Return it as operators see it."""
        fields = self.fields
        return {
            "partition": self.partition,
            "offset": self.offset,
            "time_ms": self.timestamp_ms,
            "source": f"{fields.get('topic', '?')}-{fields.get('partition', '?')}",
            "source_offset": fields.get("offset", "?"),
            "group": fields.get("group", "?"),
            "count": fields.get("delivery.count", "?"),
            "key": None if self.key is None else self.key.decode(errors="replace"),
            "value_bytes": len(self.value or b""),
            "message": fields.get("message", ""),
        }


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters to use; None matches all.

    Attributes:
        source: The topic of the record.
        group: The group that could not process it.
        message: A part of the reason.
        since_ms: Those written at this time or later.
        until_ms: Those written before this time.
    """

    source: str | None = None
    group: str | None = None
    message: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def matches(self, letter: LetterRecord) -> bool:
        """Return whether a dead letter is to be used."""
        if self.since_ms is not None and letter.timestamp_ms < self.since_ms:
            return False
        if self.until_ms is not None and letter.timestamp_ms >= self.until_ms:
            return False
        fields = letter.fields
        return (
            self.source in {None, fields.get("topic")}
            and self.group in {None, fields.get("group")}
            and (self.message is None or self.message in fields.get("message", ""))
        )


def redriven_headers(headers: Headers, value: bytes | None) -> Headers:
    """Return the headers with which a dead letter is sent again.

    A scheduled record loses its `deliver-id`: it would replace a later pending record with the same
    id. A cancellation, which has no value, keeps it: its null value must not be delivered.
    """
    left_out = {RETRY_ATTEMPT}
    if value is not None and any(name == DELIVER_TO for name, _ in headers):
        left_out.add(DELIVER_ID)
    return tuple(
        (name, value)
        for name, value in headers
        if not name.startswith(DEAD_LETTER_PREFIX) and name not in left_out
    )
