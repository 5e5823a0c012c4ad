"""Leaders elected anew (KIP-183, KIP-460)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import check, explained
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.client.kafka_client import KafkaClient

PREFERRED: Final = 0
UNCLEAN: Final = 1
# Brokers before Kafka 2.4 know no other election.
_FIRST_WITH_KINDS: Final = 1


class Elected(NamedTuple):
    """What came of one partition's election.

    Attributes:
        place: The partition.
        code: 0: it has another leader; ELECTION_NOT_NEEDED: it has the right one already.
        message: What is wrong, in words; None if nothing is.
        told: The message of the response, if it has one.
    """

    place: TopicPartition
    code: int
    message: str | None
    told: str | None

    @property
    def is_refused(self) -> bool:
        """Whether the partition has not the leader that was asked for."""
        return self.code not in {0, ErrorCode.ELECTION_NOT_NEEDED}


async def elect_leaders(
    client: KafkaClient, kind: int, places: Iterable[TopicPartition] | None
) -> list[Elected]:
    """Have leaders elected.

    Args:
        client: The cluster.
        kind: PREFERRED: the first replica of each partition, if it is in sync. UNCLEAN: any that
            lives, where there is no leader, at the price of what it has missed.
        places: Which partitions; None: all.

    Returns:
        A row for each partition; with None only for those whose leader changed or should have.

    Raises:
        ClientError: None is elected at all: the user may not.
    """
    topics: dict[str, list[int]] = {}
    for place in places or ():
        topics.setdefault(place.topic, []).append(place.partition)
    rows = [{"topic": topic, "partitions": each} for topic, each in topics.items()]

    def body(version: int) -> dict[str, Any]:
        kinds = {"election_type": kind} if version >= _FIRST_WITH_KINDS else {}
        return kinds | {
            "topic_partitions": None if places is None else rows,
            "timeout_ms": int(client.timeout_s * 1000),
        }

    answer = await client.request_of_controller(ApiKey.ELECT_LEADERS, body)
    check(getattr(answer, "error_code", 0), "leaders cannot be elected")
    return sorted(
        Elected(
            TopicPartition(topic.topic, each.partition_id),
            each.error_code,
            explained(each.error_code, each.error_message) if each.error_code else None,
            each.error_message,
        )
        for topic in answer.replica_election_results
        for each in topic.partition_result
    )
