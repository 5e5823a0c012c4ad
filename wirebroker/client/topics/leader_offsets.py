"""Offsets of many partitions from one leader, in one request and without retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient


class LeaderOffset(NamedTuple):
    """An offset of a partition, or an error code (else 0)."""

    topic: str
    partition: int
    offset: int
    error_code: int


async def leader_offsets(
    client: KafkaClient,
    leader_id: int,
    partitions: Mapping[str, Sequence[int]],
    timestamp: int,
    *,
    read_committed: bool = False,
) -> Iterator[LeaderOffset]:
    """Return the offset of each partition at a timestamp (EARLIEST, LATEST or ms since 1970).

    -1 is the offset of a partition without such a record.
    """
    topics: list[dict[str, Any]] = [
        {
            "name": name,
            "partitions": [
                {"partition_index": partition, "timestamp": timestamp} for partition in numbers
            ],
        }
        for name, numbers in partitions.items()
    ]
    body = {"replica_id": -1, "isolation_level": int(read_committed), "topics": topics}
    answer = await client.request_of(leader_id, ApiKey.LIST_OFFSETS, body)
    return (
        LeaderOffset(topic.name, row.partition_index, int(row.offset), row.error_code)
        for topic in answer.topics
        for row in topic.partitions
    )
