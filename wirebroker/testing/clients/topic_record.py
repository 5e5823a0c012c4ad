"""One record as tests see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A record of a topic.

    Attributes:
        timestamp: Milliseconds since 1970: creation time, or append time if the topic has
            `message.timestamp.type=LogAppendTime`; -1 if the producer set none.
        value: None for a tombstone.
        headers: Names and values, in order; names may repeat.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
