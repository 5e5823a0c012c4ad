"""Offsets of share groups (KIP-932): progress, changes, deletion."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, check, check_all
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import without_frames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

_UNKNOWN: Final = -1


class SharedProgress(NamedTuple):
    """A share group's progress in one partition; None if unknown.

    Attributes:
        start: Offset below which all records are finished.
        lag: Number of unfinished records.
    """

    place: TopicPartition
    start: int | None
    lag: int | None
    leader_epoch: int | None = None


async def shared_progress_of(client: KafkaClient, name: str) -> list[SharedProgress]:
    """Return a share group's progress in the partitions that it reads or has read."""
    failure = f"the offsets of share group {name} cannot be read"
    answer = await client.request_of_coordinator(
        name,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        {"groups": [{"group_id": name, "topics": None}]},
        error_of=lambda answer: int(answer.groups[0].error_code),
    )
    (row,) = answer.groups
    check(row.error_code, failure, row.error_message)
    progress: list[SharedProgress] = []
    for topic in row.topics:
        for partition in topic.partitions:
            check(partition.error_code, failure, partition.error_message)
            start = _known(partition.start_offset)
            progress.append(
                SharedProgress(
                    TopicPartition(topic.topic_name, partition.partition_index),
                    start,
                    _known(getattr(partition, "lag", _UNKNOWN)),
                    None if start is None else _known(partition.leader_epoch),
                )
            )
    return sorted(progress, key=lambda entry: entry.place)


async def share_starts_of(client: KafkaClient, name: str) -> dict[TopicPartition, int]:
    """Return the start offsets that a share group has, by partition."""
    return {
        progress.place: progress.start
        for progress in await shared_progress_of(client, name)
        if progress.start is not None
    }


async def alter_share_offsets(
    client: KafkaClient, name: str, starts: Mapping[TopicPartition, int]
) -> None:
    """Set start offsets of a share group without members; create the group if it is missing.

    Raises:
        ClientError: The group has members, or a topic does not exist.
    """
    topics: dict[str, list[dict[str, int]]] = defaultdict(list)
    for place, offset in starts.items():
        topics[place.topic].append({"partition_index": place.partition, "start_offset": offset})
    rows = [{"topic_name": topic, "partitions": parts} for topic, parts in topics.items()]
    answer = await _request(
        client, name, ApiKey.ALTER_SHARE_GROUP_OFFSETS, {"group_id": name, "topics": rows}
    )
    failure = f"the offsets of share group {name} cannot be changed"
    check(answer.error_code, failure, answer.error_message)
    check_all(
        (
            (partition.error_code, failure, partition.error_message)
            for topic in answer.responses
            for partition in topic.partitions
        ),
        "other offset",
        "changed",
    )


async def delete_share_offsets(
    client: KafkaClient, name: str, topics: Sequence[str]
) -> dict[str, ClientError | None]:
    """Delete a share group's offsets of topics; return each topic's error.

    Raises:
        ClientError: The group has members, or does not exist.
    """
    rows = [{"topic_name": topic} for topic in topics]
    answer = await _request(
        client, name, ApiKey.DELETE_SHARE_GROUP_OFFSETS, {"group_id": name, "topics": rows}
    )
    failure = f"offsets of share group {name} cannot be deleted"
    check(answer.error_code, failure, answer.error_message)
    return {
        row.topic_name: _error_of(
            row.error_code, f"{failure} for topic {row.topic_name}", row.error_message
        )
        for row in answer.responses
    }


def _error_of(code: int, failure: str, message: str | None) -> ClientError | None:
    try:
        check(code, failure, message)
    except ClientError as error:
        return without_frames(error)
    return None


async def _request(client: KafkaClient, name: str, key: ApiKey, body: dict[str, Any]) -> Any:
    return await client.request_of_coordinator(
        name, key, body, error_of=lambda answer: int(answer.error_code)
    )


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN else number
