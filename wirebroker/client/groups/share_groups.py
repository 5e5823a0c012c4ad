"""Share groups (KIP-932): members and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, check, did_you_mean
from wirebroker.client.groups.groups import list_groups
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.client.groups.groups import ListedGroup
    from wirebroker.client.kafka_client import KafkaClient

SHARE: Final = "share"
_UNKNOWN: Final = -1


class ShareMember(NamedTuple):
    """A member with its partitions, which others may read too."""

    member_id: str
    client_id: str
    host: str
    partitions: list[TopicPartition]


class DescribedShareGroup(NamedTuple):
    """A share group."""

    name: str
    state: str
    epoch: int
    assignor: str
    members: list[ShareMember]


class SharedProgress(NamedTuple):
    """A share group's progress in one partition; None if unknown.

    Attributes:
        start: Offset below which all records are finished.
        lag: Number of unfinished records.
    """

    place: TopicPartition
    start: int | None
    lag: int | None


async def list_share_groups(client: KafkaClient) -> list[ListedGroup]:
    """Return the share groups, by name."""
    return [group for group in await list_groups(client) if group.kind == SHARE]


async def describe_share_group(client: KafkaClient, name: str) -> DescribedShareGroup:
    """Return a share group with its members.

    Raises:
        ClientError: It does not exist, or the cluster has no share groups.
    """
    answer = await client.request_of_coordinator(
        name, ApiKey.SHARE_GROUP_DESCRIBE, {"group_ids": [name]}, error_of=_first_error
    )
    (row,) = answer.groups
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        group_names = [group.name for group in await list_share_groups(client)]
        raise ClientError(
            f"there is no share group {name}{did_you_mean(name, group_names)}", code=row.error_code
        )
    check(row.error_code, f"share group {name} cannot be described", row.error_message)
    members = [
        ShareMember(
            member.member_id,
            member.client_id,
            member.client_host.removeprefix("/"),
            sorted(
                TopicPartition(topic.topic_name, partition)
                for topic in member.assignment.topic_partitions
                for partition in topic.partitions
            ),
        )
        for member in row.members
    ]
    return DescribedShareGroup(name, row.group_state, row.group_epoch, row.assignor_name, members)


async def shared_progress_of(client: KafkaClient, name: str) -> list[SharedProgress]:
    """Return a share group's progress in partitions that it has begun."""
    failure = f"the offsets of share group {name} cannot be read"
    answer = await client.request_of_coordinator(
        name,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        {"groups": [{"group_id": name, "topics": None}]},
        error_of=_first_error,
    )
    (row,) = answer.groups
    check(row.error_code, failure, row.error_message)
    progress: list[SharedProgress] = []
    for topic in row.topics:
        for partition in topic.partitions:
            check(partition.error_code, failure, partition.error_message)
            topic_partition = TopicPartition(topic.topic_name, partition.partition_index)
            lag = getattr(partition, "lag", _UNKNOWN)
            progress.append(
                SharedProgress(
                    topic_partition, _offset_or_none(partition.start_offset), _offset_or_none(lag)
                )
            )
    return sorted(progress, key=lambda entry: entry.place)


def _first_error(answer: Any) -> int:
    return int(answer.groups[0].error_code)


def _offset_or_none(number: int) -> int | None:
    return None if number == _UNKNOWN else number
