"""Share groups (KIP-932): lists and members."""

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


class ShareMember(NamedTuple):
    """A member with its partitions, which others may read too."""

    member_id: str
    client_id: str
    host: str
    partitions: list[TopicPartition]
    epoch: int


class DescribedShareGroup(NamedTuple):
    """A share group."""

    name: str
    state: str
    epoch: int
    assignor: str
    members: list[ShareMember]
    assignment_epoch: int


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
            f"there is no share group {name}{did_you_mean(name, group_names)}",
            code=row.error_code,
            broker_message=row.error_message,
        )
    check(row.error_code, f"share group {name} cannot be described", row.error_message)
    return share_description(row)


def share_description(row: Any) -> DescribedShareGroup:
    """Return a group of a ShareGroupDescribeResponse, without an error."""
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
            member.member_epoch,
        )
        for member in row.members
    ]
    return DescribedShareGroup(
        row.group_id,
        row.group_state,
        row.group_epoch,
        row.assignor_name,
        members,
        row.assignment_epoch,
    )


def _first_error(answer: Any) -> int:
    return int(answer.groups[0].error_code)
