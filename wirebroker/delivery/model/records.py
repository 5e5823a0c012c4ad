"""Records that the machine reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.codecs.records.record import Headers


class ReceivedRecord(NamedTuple):
    """A record of an input topic; the timestamp is in milliseconds since 1970.

    `problem` says why its headers could not be read; it becomes a dead letter with this reason.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    problem: str = ""

    @property
    def name(self) -> str:
        """Its place in the cluster, which names its pending entry.

        The timestamp distinguishes it from a record of a deleted topic with the same name.
        """
        return f"{self.topic}/{self.partition}/{self.offset}/{self.timestamp_ms}"


class OutputRecord(NamedTuple):
    """A record to append.

    `partition` is None for the one that Java's producer selects by key. `cause` names the input
    record or entry, of which the broker may refuse this record.
    """

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    cause: str
