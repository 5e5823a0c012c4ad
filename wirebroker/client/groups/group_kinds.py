"""Groups of any kind: consumer, share and streams groups alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import (
    DescribedConsumers,
    GroupMember,
    describe_group,
    list_groups,
    progress_of,
)
from wirebroker.client.groups.share_groups import SHARE, describe_share_group
from wirebroker.client.groups.share_offsets import shared_progress_of
from wirebroker.client.groups.streams_groups import STREAMS, describe_streams_group
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.client.groups.groups import ListedGroup
    from wirebroker.client.groups.share_groups import DescribedShareGroup
    from wirebroker.client.groups.streams_groups import DescribedStreamsGroup
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition


class PartitionProgress(NamedTuple):
    """A group's progress in one partition; None if unknown.

    Attributes:
        committed: The committed offset; of a share group the first unfinished offset.
    """

    place: TopicPartition
    committed: int | None
    end: int | None
    lag: int | None


async def listed_group(client: KafkaClient, name: str) -> ListedGroup | None:
    """Return a group of any kind as it is listed, or None."""
    return next((group for group in await list_groups(client) if group.name == name), None)


async def describe_any_group(client: KafkaClient, name: str) -> DescribedConsumers:
    """Return a group of any kind with its members.

    Raises:
        ClientError: It does not exist.
    """
    try:
        return await describe_group(client, name)
    except ClientError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        listed = await listed_group(client, name)
        if listed is not None and listed.kind == SHARE:
            return share_consumers(await describe_share_group(client, name))
        if listed is not None and listed.kind == STREAMS:
            return streams_consumers(await describe_streams_group(client, name))
        raise


def share_consumers(group: DescribedShareGroup) -> DescribedConsumers:
    """Return a share group in the form of consumer groups."""
    members = [
        GroupMember(
            member.member_id, None, member.client_id, member.host, member.partitions, member.epoch
        )
        for member in group.members
    ]
    epochs = (group.epoch, group.assignment_epoch)
    return DescribedConsumers(group.name, group.state, group.assignor, members, *epochs, SHARE)


def streams_consumers(group: DescribedStreamsGroup) -> DescribedConsumers:
    """Return a streams group in the form of consumer groups."""
    members = [
        GroupMember(member.member_id, None, member.client_id, member.host, places, member.epoch)
        for member, places in zip(group.members, group.read_partitions(), strict=True)
    ]
    epochs = (group.epoch, group.assignment_epoch)
    return DescribedConsumers(
        group.name, group.state, group.assignor or "", members, *epochs, STREAMS
    )


async def progress_of_any(
    client: KafkaClient, name: str, kind: str | None, assigned: Iterable[TopicPartition] = ()
) -> list[PartitionProgress]:
    """Return the progress of a group of this kind in its partitions and assigned ones."""
    if kind == SHARE:
        return [
            PartitionProgress(progress.place, progress.start, None, progress.lag)
            for progress in await shared_progress_of(client, name)
        ]
    return [
        PartitionProgress(progress.place, progress.committed, progress.end, progress.lag)
        for progress in await progress_of(client, name, assigned)
    ]
