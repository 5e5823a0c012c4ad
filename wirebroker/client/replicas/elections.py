"""Leader elections (KIP-183, KIP-460)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, check, explained
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.client.kafka_client import KafkaClient

PREFERRED: Final = 0
UNCLEAN: Final = 1
# Kafka before 2.4 has only preferred elections.
_FIRST_WITH_KINDS: Final = 1


class Elected(NamedTuple):
    """The result of one partition's election.

    `code` is 0 for a new leader, ELECTION_NOT_NEEDED if the right one leads already.
    """

    place: TopicPartition
    code: int
    message: str | None
    told: str | None

    @property
    def is_refused(self) -> bool:
        """Whether the election failed."""
        return self.code not in {0, ErrorCode.ELECTION_NOT_NEEDED}


class PartitionLeadership(NamedTuple):
    """A partition with its leader, -1 for none, and its replicas; the first is preferred."""

    place: TopicPartition
    leader: int
    replicas: list[int]
    isr: list[int]


async def led_partitions(
    client: KafkaClient, topics: Sequence[str] | None = None
) -> list[PartitionLeadership]:
    """Return the partitions of topics, also those without a leader; None for all topics.

    Raises:
        ClientError: A topic does not exist.
    """
    partitions: list[PartitionLeadership] = []
    for topic in (await client.metadata(topics)).topics:
        if topics is not None and not topic.partitions:
            raise ClientError(f"there is no topic {topic.name}", code=topic.error_code)
        partitions += [
            PartitionLeadership(
                TopicPartition(topic.name, partition.partition_index),
                partition.leader_id,
                list(partition.replica_nodes),
                list(partition.isr_nodes),
            )
            for partition in topic.partitions
        ]
    return sorted(partitions)


async def elect_leaders(
    client: KafkaClient, kind: int, partitions: Iterable[TopicPartition] | None
) -> list[Elected]:
    """Elect leaders of partitions; None for all.

    PREFERRED elects the first replica if it is in sync. UNCLEAN elects any live replica of a
    partition without a leader, which may lose records.

    Returns:
        A result for each partition; with None, only for changed leaders and failures.
    """
    topics: dict[str, list[int]] = {}
    for partition in partitions or ():
        topics.setdefault(partition.topic, []).append(partition.partition)
    rows = [{"topic": topic, "partitions": indexes} for topic, indexes in topics.items()]

    def body(version: int) -> dict[str, Any]:
        kinds = {"election_type": kind} if version >= _FIRST_WITH_KINDS else {}
        return kinds | {
            "topic_partitions": None if partitions is None else rows,
            "timeout_ms": int(client.timeout_s * 1000),
        }

    answer = await client.request_of_controller(ApiKey.ELECT_LEADERS, body)
    check(getattr(answer, "error_code", 0), "leaders cannot be elected")
    return sorted(
        Elected(
            TopicPartition(topic.topic, result.partition_id),
            result.error_code,
            explained(result.error_code, result.error_message) if result.error_code else None,
            result.error_message,
        )
        for topic in answer.replica_election_results
        for result in topic.partition_result
    )
