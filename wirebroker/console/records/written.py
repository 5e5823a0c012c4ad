"""The number of records of a topic between two times, estimated by offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.topics.leaders import offsets_at, partitions_of
from wirebroker.codecs.special_offsets import LATEST

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient


class WrittenRange(NamedTuple):
    """The offsets of a partition from the first record at or after a time to that of another one.

    Records outside of the offsets may have timestamps in the range, if timestamps are not in order.

    Attributes:
        first, end: The first offset, and the one after the last.
    """

    partition: int
    first: int
    end: int

    @property
    def offsets(self) -> int:
        """Their number; there are fewer records in compacted topics."""
        return max(0, self.end - self.first)


class WrittenRanges(NamedTuple):
    """The ranges of the partitions with a leader, and the partitions without one."""

    ranges: list[WrittenRange]
    leaderless: list[int]


async def written_between(
    client: KafkaClient, topic: str, from_ms: int, until_ms: int | None
) -> WrittenRanges:
    """Return the offsets from a time to another one (exclusive; None for the end), by partition.

    Raises:
        ClientError: The topic cannot be read.
    """
    leaders = await partitions_of(client, [topic])
    leaderless = [place.partition for place, leader in leaders.items() if leader < 0]
    places = [place for place, leader in leaders.items() if leader >= 0]
    if not places:
        return WrittenRanges([], leaderless)
    until = LATEST if until_ms is None else until_ms
    firsts, ends = await client.together(
        offsets_at(client, dict.fromkeys(places, from_ms)),
        offsets_at(client, dict.fromkeys(places, until)),
    )
    ranges = [WrittenRange(place.partition, firsts[place], ends[place]) for place in places]
    return WrittenRanges(ranges, leaderless)
