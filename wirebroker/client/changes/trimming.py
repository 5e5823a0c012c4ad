"""Deletion of the oldest records of a topic: what a request would delete, and the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.topics.leaders import TopicPartition, delete_records, offsets_at
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.client.kafka_client import KafkaClient


class TrimmedPartition(NamedTuple):
    """A partition whose records from `start` to `before` (exclusive) are deleted."""

    place: TopicPartition
    start: int
    before: int
    end: int

    @property
    def is_to_end(self) -> bool:
        """Whether all records are deleted: the end moves."""
        return self.before >= self.end

    @property
    def records(self) -> int:
        """Number of offsets; there are fewer records in compacted topics."""
        return self.before - self.start


async def planned_trim(
    client: KafkaClient,
    places: Sequence[TopicPartition],
    *,
    offset: int | None = None,
    timestamp: int = LATEST,
) -> list[TrimmedPartition]:
    """Return what deleting the records before an offset or a time deletes.

    `timestamp` (ms since 1970, or LATEST for all records) applies without an offset.
    """
    starts = await offsets_at(client, dict.fromkeys(places, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(places, LATEST))
    if offset is None:
        requested = await offsets_at(client, dict.fromkeys(places, timestamp))
    else:
        requested = dict.fromkeys(places, offset)
    return [
        TrimmedPartition(place, start, min(max(start, requested[place]), ends[place]), ends[place])
        for place, start in ((place, starts[place]) for place in places)
    ]


async def trim(client: KafkaClient, rows: Iterable[TrimmedPartition]) -> dict[TopicPartition, int]:
    """Delete the records of a plan; return the new start of each partition that had some.

    Raises:
        ClientError: As `delete_records`.
    """
    before = {row.place: row.before for row in rows if row.records}
    return await delete_records(client, before) if before else {}
