"""Consumer groups: lists, members, committed offsets, deletion."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import (
    ClientError,
    UnservedError,
    check,
    check_all,
    did_you_mean,
    first_partition_error,
)
from wirebroker.client.groups.consumer_protocol import assignment_of
from wirebroker.client.topics.leaders import TopicPartition, offsets_at
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.special_offsets import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.client.kafka_client import KafkaClient

# Last versions for one group, with topics by name.
_FETCH_OF_ONE_GROUP: Final = 7
_COMMIT_BY_NAME: Final = 9
_NO_OFFSET: Final = -1
_NO_EPOCH: Final = -1
# State of a missing group, in classic coordinators.
DEAD: Final = "Dead"
CONSUMER: Final = "consumer"
# ConsumerGroupDescribe's member_type.
_IS_UPGRADED: Final = {0: False, 1: True}
_UNKNOWN_TYPE: Final = -1


class ListedGroup(NamedTuple):
    """A listed group; `kind` is None before Kafka 3.8, `state` before 2.6."""

    name: str
    state: str | None
    kind: str | None
    protocol: str


class GroupMember(NamedTuple):
    """A member; `epoch` and what follows are of groups of the consumer protocol (KIP-848).

    Attributes:
        is_upgraded: Whether the member uses that protocol itself; None if unknown.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[TopicPartition]
    epoch: int | None = None
    target: list[TopicPartition] | None = None
    is_upgraded: bool | None = None


class DescribedConsumers(NamedTuple):
    """A group with its members; epochs are of the consumer protocol (KIP-848).

    Attributes:
        kind: classic, consumer, share or streams.
    """

    name: str
    state: str
    assignor: str
    members: list[GroupMember]
    epoch: int | None = None
    assignment_epoch: int | None = None
    kind: str = "classic"


class GroupProgress(NamedTuple):
    """A group's progress in one partition; None if unknown."""

    place: TopicPartition
    committed: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        """Number of records behind the end."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


async def list_groups(client: KafkaClient) -> list[ListedGroup]:
    """Return the groups of all coordinators, by name."""
    return sorted(await listed_groups(client), key=lambda group: group.name)


async def listed_groups(client: KafkaClient) -> list[ListedGroup]:
    """Return the groups of all coordinators, in the order of their responses."""
    requests = [
        client.request_of(broker_id, ApiKey.LIST_GROUPS, {})
        for broker_id in await client.broker_ids()
    ]
    groups: list[ListedGroup] = []
    for answer in await client.together(*requests):
        check(answer.error_code, "groups cannot be listed")
        for group in answer.groups:
            state, kind = group.group_state or None, group.group_type or None
            groups.append(ListedGroup(group.group_id, state, kind, group.protocol_type))
    return list(dict.fromkeys(groups))


async def describe_group(client: KafkaClient, name: str) -> DescribedConsumers:
    """Return a group of either protocol with its members."""
    answer = await client.request_of_coordinator(
        name,
        ApiKey.DESCRIBE_GROUPS,
        {"groups": [name]},
        error_of=lambda answer: int(answer.groups[0].error_code),
    )
    (row,) = answer.groups
    if row.error_code not in {0, ErrorCode.GROUP_ID_NOT_FOUND}:
        check(row.error_code, f"group {name} cannot be described")
    if not row.error_code and row.group_state != DEAD:
        return classic_description(row)
    return await _describe_new(client, name)


def classic_description(row: Any) -> DescribedConsumers:
    """Return a group of a DescribeGroupsResponse, without an error and not dead."""
    members = [
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host.removeprefix("/"),
            assignment_of(member.member_assignment),
        )
        for member in row.members
    ]
    return DescribedConsumers(row.group_id, row.group_state, row.protocol_data, members)


async def _no_such_group(client: KafkaClient, name: str, message: str | None) -> ClientError:
    group_names = [group.name for group in await list_groups(client)]
    return ClientError(
        f"there is no group {name}{did_you_mean(name, group_names)}",
        code=ErrorCode.GROUP_ID_NOT_FOUND,
        broker_message=message,
    )


async def _describe_new(client: KafkaClient, name: str) -> DescribedConsumers:
    try:
        answer = await client.request_of_coordinator(
            name,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            {"group_ids": [name]},
            error_of=lambda answer: int(answer.groups[0].error_code),
        )
    except UnservedError:
        raise await _no_such_group(client, name, f"Group {name} not found.") from None
    (row,) = answer.groups
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise await _no_such_group(client, name, row.error_message)
    check(row.error_code, f"group {name} cannot be described", row.error_message)
    return consumer_description(row)


def consumer_description(row: Any) -> DescribedConsumers:
    """Return a group of a ConsumerGroupDescribeResponse, without an error."""
    members = [
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host.removeprefix("/"),
            _partitions_of(member.assignment),
            member.member_epoch,
            _partitions_of(member.target_assignment),
            _IS_UPGRADED.get(getattr(member, "member_type", _UNKNOWN_TYPE)),
        )
        for member in row.members
    ]
    epochs = (row.group_epoch, row.assignment_epoch)
    return DescribedConsumers(
        row.group_id, row.group_state, row.assignor_name, members, *epochs, CONSUMER
    )


def _partitions_of(assignment: Any) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    ]


async def committed_of(client: KafkaClient, name: str) -> dict[TopicPartition, int]:
    """Return a group's committed offsets, by partition."""
    committed = await committed_with_epochs(client, name)
    return {partition: offset for partition, (offset, _) in committed.items()}


async def committed_with_epochs(
    client: KafkaClient, name: str
) -> dict[TopicPartition, tuple[int, int | None]]:
    """Return committed offsets with leader epochs, None if unknown."""
    committed: dict[TopicPartition, tuple[int, int | None]] = {}
    for place, row in (await committed_rows(client, name)).items():
        epoch = getattr(row, "committed_leader_epoch", _NO_EPOCH)
        committed[place] = (row.committed_offset, None if epoch == _NO_EPOCH else epoch)
    return committed


async def committed_rows(client: KafkaClient, name: str) -> dict[TopicPartition, Any]:
    """Return the partitions of an OffsetFetch response that have a committed offset, in order."""
    answer = await client.request_of_coordinator(
        name,
        ApiKey.OFFSET_FETCH,
        {"group_id": name, "topics": None},
        error_of=lambda answer: int(answer.error_code),
        at_most=_FETCH_OF_ONE_GROUP,
    )
    check(answer.error_code, f"the offsets of group {name} cannot be read")
    rows: dict[TopicPartition, Any] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            check(
                partition.error_code, f"the offset of group {name} in {topic.name} cannot be read"
            )
            if partition.committed_offset != _NO_OFFSET:
                rows[TopicPartition(topic.name, partition.partition_index)] = partition
    return dict(sorted(rows.items()))


async def progress_of(
    client: KafkaClient, name: str, assigned: Iterable[TopicPartition] = ()
) -> list[GroupProgress]:
    """Return a group's progress in committed and assigned partitions."""
    committed = await committed_of(client, name)
    partitions = sorted({*committed, *assigned})
    existing = await _existing(client, partitions)
    ends = await offsets_at(client, dict.fromkeys(existing, LATEST))
    return [
        GroupProgress(partition, committed.get(partition), ends.get(partition))
        for partition in partitions
    ]


async def _existing(
    client: KafkaClient, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    partitions = list(partitions)
    answer = await client.metadata(sorted({partition.topic for partition in partitions}))
    existing = {
        TopicPartition(topic.name, partition.partition_index)
        for topic in answer.topics
        if not topic.error_code
        for partition in topic.partitions
    }
    return [partition for partition in partitions if partition in existing]


async def commit(client: KafkaClient, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group without members.

    Raises:
        ClientError: The group has members.
    """
    topics: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for partition, offset in offsets.items():
        topics[partition.topic].append(
            {"partition_index": partition.partition, "committed_offset": offset}
        )
    body = {
        "group_id": name,
        "topics": [{"name": topic, "partitions": rows} for topic, rows in topics.items()],
    }
    answer = await client.request_of_coordinator(
        name, ApiKey.OFFSET_COMMIT, body, error_of=first_partition_error, at_most=_COMMIT_BY_NAME
    )
    check_all(
        (
            (row.error_code, f"offsets of group {name} cannot be committed", None)
            for topic in answer.topics
            for row in topic.partitions
        ),
        "other offset",
        "committed",
    )


async def delete_group(client: KafkaClient, name: str) -> None:
    """Delete a group and its offsets.

    Raises:
        ClientError: It has members, or does not exist.
    """
    answer = await client.request_of_coordinator(
        name,
        ApiKey.DELETE_GROUPS,
        {"groups_names": [name]},
        error_of=lambda answer: int(answer.results[0].error_code),
    )
    (row,) = answer.results
    message = getattr(row, "error_message", None)
    check(row.error_code, f"group {name} cannot be deleted", message)


async def delete_offsets(
    client: KafkaClient, name: str, partitions: Iterable[TopicPartition]
) -> tuple[int, dict[TopicPartition, int]]:
    """Delete committed offsets; return the group's error code and each partition's."""
    topics: dict[str, list[dict[str, int]]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append({"partition_index": partition.partition})
    rows = [
        {"name": topic, "partitions": partition_rows} for topic, partition_rows in topics.items()
    ]
    answer = await client.request_of_coordinator(
        name,
        ApiKey.OFFSET_DELETE,
        {"group_id": name, "topics": rows},
        error_of=lambda answer: int(answer.error_code),
    )
    return answer.error_code, {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
