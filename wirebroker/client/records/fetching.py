"""One Fetch request to a leader."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import check
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.client.kafka_client import KafkaClient

# Last version with topic names.
_BY_NAME: Final = 12


class FetchLimits(NamedTuple):
    """Limits of a request; a first batch may be larger.

    Attributes:
        wait_ms: How long the leader waits for records.
    """

    wait_ms: int
    bytes: int
    partition_bytes: int


async def fetch_from(
    client: KafkaClient,
    leader_id: int,
    positions: Iterable[tuple[TopicPartition, int]],
    limits: FetchLimits,
    *,
    read_committed: bool,
) -> list[tuple[TopicPartition, Any]]:
    """Return the rows of a FetchResponse, whose error codes the caller checks.

    `positions` are the partitions with their next offsets; the first ones are served first.
    """
    topics: dict[str, list[dict[str, int]]] = defaultdict(list)
    for place, offset in positions:
        topics[place.topic].append(
            {
                "partition": place.partition,
                "fetch_offset": offset,
                "partition_max_bytes": limits.partition_bytes,
            }
        )
    body = {
        "replica_id": -1,
        "max_wait_ms": limits.wait_ms,
        "min_bytes": 1,
        "max_bytes": limits.bytes,
        "isolation_level": int(read_committed),
        "topics": [{"topic": name, "partitions": rows} for name, rows in topics.items()],
    }
    answer = await client.request_of(leader_id, ApiKey.FETCH, body, at_most=_BY_NAME)
    check(answer.error_code, "records cannot be fetched")
    return [
        (TopicPartition(topic.topic, row.partition_index), row)
        for topic in answer.responses
        for row in topic.partitions
    ]
