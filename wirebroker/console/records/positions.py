"""Where reading begins and ends, by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import (
    TopicPartition,
    offsets_at,
    offsets_for_times,
    partitions_of,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.kafka_client import KafkaClient


class StoredOffsets(NamedTuple):
    """Offsets of a partition that exist: from `start`, before `end`."""

    start: int
    end: int

    def nearest(self, offset: int) -> int:
        """Return the nearest offset in the range, or its end."""
        return min(max(offset, self.start), self.end)


async def ranges_of(
    client: KafkaClient, topic: str, partitions: Sequence[int] | None, *, is_committed: bool
) -> dict[TopicPartition, StoredOffsets]:
    """Return the offsets of partitions of a topic (None for all).

    With `is_committed` they end at the first open transaction.

    Raises:
        ClientError: The topic or a partition does not exist, or cannot be read.
    """
    places = list(await partitions_of(client, [topic]))
    if partitions is not None:
        chosen = [TopicPartition(topic, partition) for partition in dict.fromkeys(partitions)]
        for place in chosen:
            if place not in places:
                raise ClientError(
                    f"there is no partition {place.partition}: {topic} has {len(places)},"
                    " numbered from 0",
                    code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
        places = chosen
    starts, ends = await client.together(
        offsets_at(client, dict.fromkeys(places, EARLIEST)),
        offsets_at(client, dict.fromkeys(places, LATEST), read_committed=is_committed),
    )
    return {place: StoredOffsets(starts[place], ends[place]) for place in places}


async def ranges_until(
    client: KafkaClient, ranges: dict[TopicPartition, StoredOffsets], until_ms: int | None
) -> dict[TopicPartition, StoredOffsets]:
    """Return the ranges up to a time (None for all)."""
    ends = await ends_of(client, ranges, until_ms)
    return {place: span._replace(end=ends[place]) for place, span in ranges.items()}


async def begins_of(
    client: KafkaClient,
    ranges: dict[TopicPartition, StoredOffsets],
    start: str,
    *,
    offset: int,
    time_ms: int,
) -> dict[TopicPartition, int]:
    """Return the first offset to read; `start` is start, offset or time."""
    if start == "time":
        found = await offsets_for_times(client, dict.fromkeys(ranges, time_ms))
        return {place: span.nearest(found.get(place, span.end)) for place, span in ranges.items()}
    if start == "offset":
        return {place: span.nearest(offset) for place, span in ranges.items()}
    return {place: span.start for place, span in ranges.items()}


async def ends_of(
    client: KafkaClient, ranges: dict[TopicPartition, StoredOffsets], until_ms: int | None
) -> dict[TopicPartition, int]:
    """Return the offset before which reading ends: of the first record after a time, or the end."""
    if until_ms is None:
        return {place: span.end for place, span in ranges.items()}
    found = await offsets_for_times(client, dict.fromkeys(ranges, until_ms + 1))
    return {place: span.nearest(found.get(place, span.end)) for place, span in ranges.items()}
