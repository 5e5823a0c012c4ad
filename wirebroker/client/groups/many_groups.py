"""Many groups with few requests: each names groups of one coordinator.

An error of one group is its value in the result and does not hide the others.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from wirebroker.client.errors import PASSING, ClientError, UnservedError, check
from wirebroker.client.groups.group_kinds import share_consumers, streams_consumers
from wirebroker.client.groups.groups import (
    CONSUMER,
    DEAD,
    DescribedConsumers,
    ListedGroup,
    classic_description,
    consumer_description,
)
from wirebroker.client.groups.share_groups import SHARE, share_description
from wirebroker.client.groups.streams_groups import STREAMS, streams_description
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, without_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wirebroker.client.kafka_client import KafkaClient

    Described: TypeAlias = "DescribedConsumers | ClientError"

# OffsetFetch: first version for several groups, and last with topic names.
_FIRST_OF_SEVERAL: Final = 8
_LAST_BY_NAME: Final = 9
_NO_OFFSET: Final = -1
_NO_EPOCH: Final = -1


async def listed_groups_of(client: KafkaClient, coordinator_id: int) -> list[ListedGroup]:
    """Return the groups that a broker coordinates."""
    answer = await client.request_of(coordinator_id, ApiKey.LIST_GROUPS, {})
    check(answer.error_code, f"groups of broker {coordinator_id} cannot be listed")
    return [
        ListedGroup(
            group.group_id, group.group_state or None, group.group_type or None, group.protocol_type
        )
        for group in answer.groups
    ]


async def describe_groups(
    client: KafkaClient, coordinator_id: int, kind: str | None, names: Sequence[str]
) -> dict[str, Described]:
    """Return groups of one kind and coordinator, by name.

    A group that has moved to another coordinator or is gone is missing in the result.
    """
    key, convert = _QUESTIONS.get(kind or "", _CLASSIC)
    body = {"groups" if key is ApiKey.DESCRIBE_GROUPS else "group_ids": list(names)}
    answer = await client.request_of(coordinator_id, key, body)
    described: dict[str, Described] = {}
    for row in answer.groups:
        if row.error_code in {*PASSING, ErrorCode.GROUP_ID_NOT_FOUND} or row.group_state == DEAD:
            continue
        described[row.group_id] = _error_of(row) or convert(row)
    return described


class ManyOffsets(NamedTuple):
    """Committed offsets of one group, as parallel sequences in the order of the response."""

    topics: list[str]
    partitions: array[int]
    offsets: array[int]


async def committed_of_groups(
    client: KafkaClient, coordinator_id: int, names: Sequence[str]
) -> dict[str, ManyOffsets | ClientError]:
    """Return all committed offsets of groups of one coordinator, by name.

    Raises:
        UnservedError: The broker is older than Kafka 3.0.
    """

    def body(version: int) -> dict[str, Any]:
        if version < _FIRST_OF_SEVERAL:
            raise UnservedError(
                "the broker cannot return the offsets of several groups (needs Kafka 3.0 or newer)"
            )
        return {"groups": [{"group_id": name, "topics": None} for name in names]}

    answer = await client.request_of(
        coordinator_id, ApiKey.OFFSET_FETCH, body, at_most=_LAST_BY_NAME
    )
    committed: dict[str, ManyOffsets | ClientError] = {}
    for row in answer.groups:
        if row.error_code not in PASSING:
            committed[row.group_id] = _error_of(row) or _offsets(row.topics)
    return committed


def _offsets(topics: Iterable[Any]) -> ManyOffsets:
    result = ManyOffsets([], array("i"), array("q"))
    for topic in topics:
        for partition in topic.partitions:
            if not partition.error_code and partition.committed_offset != _NO_OFFSET:
                result.topics.append(topic.name)
                result.partitions.append(partition.partition_index)
                result.offsets.append(partition.committed_offset)
    return result


def _error_of(row: Any) -> ClientError | None:
    try:
        message = getattr(row, "error_message", None)
        check(row.error_code, f"group {row.group_id} cannot be described", message)
    except ClientError as error:
        return without_frames(error)
    return None


_CLASSIC: Final[tuple[ApiKey, Callable[[Any], DescribedConsumers]]] = (
    ApiKey.DESCRIBE_GROUPS,
    classic_description,
)
_QUESTIONS: Final[dict[str, tuple[ApiKey, Callable[[Any], DescribedConsumers]]]] = {
    CONSUMER: (ApiKey.CONSUMER_GROUP_DESCRIBE, consumer_description),
    SHARE: (
        ApiKey.SHARE_GROUP_DESCRIBE,
        lambda row: share_consumers(share_description(row)),
    ),
    STREAMS: (
        ApiKey.STREAMS_GROUP_DESCRIBE,
        lambda row: streams_consumers(streams_description(row)),
    ),
}
