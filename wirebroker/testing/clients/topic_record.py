"""One record as tests see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A record of a topic, with where it stands.

    Attributes:
        topic: The topic's name.
        partition: The partition's number, from 0.
        offset: Where it stands in the partition.
        timestamp: Milliseconds since 1970: when it was created, or appended where the topic has
            `message.timestamp.type=LogAppendTime`; -1 if the producer set none.
        key: None if it has none.
        value: None for a tombstone.
        headers: Names and values, in order; a name may come twice.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
