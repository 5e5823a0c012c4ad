"""Output of `--delete-offsets` of groups with committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.cli.kafka.groups.chosen_partitions import listed_partitions
from wirebroker.cli.kafka.plumbing.java_words import meaning, thrown_for
from wirebroker.cli.kafka.plumbing.tables import aligned, width_of
from wirebroker.client.groups.groups import delete_offsets
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

_OF_GROUP: Final = {
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
}
_OF_PARTITIONS: Final = {
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
# The row of a missing topic has this partition.
_NO_PARTITION: Final = -1


async def topic_offsets_deleted(
    client: KafkaClient, group: str, topics: Sequence[str]
) -> list[str]:
    """Delete a group's committed offsets of topics and of `topic:0,1`; return the output."""
    partitions = {
        partition for text in topics if ":" in text for partition in listed_partitions(text)
    }
    codes: dict[TopicPartition, int] = {}
    answer = await client.metadata([text for text in topics if ":" not in text])
    for topic in answer.topics:
        if topic.error_code:
            codes[TopicPartition(topic.name, _NO_PARTITION)] = topic.error_code
        for partition in topic.partitions:
            partitions.add(TopicPartition(topic.name, partition.partition_index))
    return await offsets_deleted(client, group, partitions, codes)


async def offsets_deleted(
    client: KafkaClient,
    group: str,
    partitions: Iterable[TopicPartition],
    failed: Mapping[TopicPartition, int],
) -> list[str]:
    """Delete committed offsets; return the output, with topics that failed before."""
    chosen = list(partitions)
    code, codes = await delete_offsets(client, group, chosen)
    if code:
        codes = dict.fromkeys(chosen, code)
    first = code or next((code for code in codes.values() if code), 0)
    rows: list[list[object]] = [["TOPIC", "PARTITION", "STATUS"]]
    results = {**failed, **codes}
    for partition in sorted(results, key=lambda part: f"{part.topic}{part.partition}"):
        result = results[partition]
        status = f"Error: {thrown_for(result)}" if result else "Successful"
        number = None if partition.partition == _NO_PARTITION else partition.partition
        rows.append([partition.topic, number, status])
    width = width_of(partition.topic for partition in results)
    return [*_headline(group, first), "", *aligned(rows, (width, 10, 15))]


def _headline(group: str, code: int) -> list[str]:
    if not code:
        return [f"Request succeeded for deleting offsets from group {group}."]
    if code in _OF_GROUP:
        return ["", f"Error: {meaning(code)}"]
    if code in _OF_PARTITIONS:
        return [
            "",
            "Error: Encountered some partition-level error, see the follow-up details.",
        ]
    return ["", f"Error: Encountered some unknown error: {ErrorCode(code).name}"]
