"""Consumer groups: lists, members, committed offsets, deletion."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, UnservedError, check, did_you_mean
from wirebroker.client.groups.consumer_protocol import assignment_of
from wirebroker.client.topics.leaders import LATEST, TopicPartition, offsets_at
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.client.kafka_client import KafkaClient

# Last versions for one group, with topics by name.
_FETCH_OF_ONE_GROUP: Final = 7
_COMMIT_BY_NAME: Final = 9
_NO_OFFSET: Final = -1
_NO_EPOCH: Final = -1
# State of a missing group, in classic coordinators.
_DEAD: Final = "Dead"


class ListedGroup(NamedTuple):
    """A listed group; `kind` is None before Kafka 3.8, `state` before 2.6."""

    name: str
    state: str | None
    kind: str | None
    protocol: str


class GroupMember(NamedTuple):
    """A member; `epoch` and `target` are of the consumer protocol (KIP-848)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[TopicPartition]
    epoch: int | None = None
    target: list[TopicPartition] | None = None


class DescribedConsumers(NamedTuple):
    """A group with its members; epochs are of the consumer protocol (KIP-848)."""

    name: str
    state: str
    assignor: str
    members: list[GroupMember]
    epoch: int | None = None
    assignment_epoch: int | None = None


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
    asked = [
        client.request_of(broker_id, ApiKey.LIST_GROUPS, {})
        for broker_id in await client.broker_ids()
    ]
    found: set[ListedGroup] = set()
    for answer in await client.together(*asked):
        check(answer.error_code, "groups cannot be listed")
        for each in answer.groups:
            state, kind = each.group_state or None, each.group_type or None
            found.add(ListedGroup(each.group_id, state, kind, each.protocol_type))
    return sorted(found, key=lambda each: each.name)


async def describe_group(client: KafkaClient, name: str) -> DescribedConsumers:
    """Return a group of either protocol with its members.

    Raises:
        ClientError: The group does not exist.
    """
    answer = await client.request_of_coordinator(
        name,
        ApiKey.DESCRIBE_GROUPS,
        {"groups": [name]},
        error_of=lambda answer: int(answer.groups[0].error_code),
    )
    (row,) = answer.groups
    if row.error_code not in {0, ErrorCode.GROUP_ID_NOT_FOUND}:
        check(row.error_code, f"group {name} cannot be described")
    if not row.error_code and row.group_state != _DEAD:
        members = [
            GroupMember(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                assignment_of(each.member_assignment),
            )
            for each in row.members
        ]
        return DescribedConsumers(name, row.group_state, row.protocol_data, members)
    found = await _describe_new(client, name)
    if found is None:
        others = [each.name for each in await list_groups(client)]
        raise ClientError(
            f"there is no group {name}{did_you_mean(name, others)}",
            code=ErrorCode.GROUP_ID_NOT_FOUND,
        )
    return found


async def _describe_new(client: KafkaClient, name: str) -> DescribedConsumers | None:
    """Return a group of the consumer protocol (KIP-848), or None."""
    try:
        answer = await client.request_of_coordinator(
            name,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            {"group_ids": [name]},
            error_of=lambda answer: int(answer.groups[0].error_code),
        )
    except UnservedError:
        return None
    (row,) = answer.groups
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    check(row.error_code, f"group {name} cannot be described", row.error_message)
    members = [
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host.removeprefix("/"),
            _places_of(each.assignment),
            each.member_epoch,
            _places_of(each.target_assignment),
        )
        for each in row.members
    ]
    return DescribedConsumers(
        name, row.group_state, row.assignor_name, members, row.group_epoch, row.assignment_epoch
    )


def _places_of(assignment: Any) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    ]


async def committed_of(client: KafkaClient, name: str) -> dict[TopicPartition, int]:
    """Return a group's committed offsets, by partition."""
    found = await committed_with_epochs(client, name)
    return {place: offset for place, (offset, _) in found.items()}


async def committed_with_epochs(
    client: KafkaClient, name: str
) -> dict[TopicPartition, tuple[int, int | None]]:
    """Return a group's committed offsets with leader epochs, None if unknown."""
    answer = await client.request_of_coordinator(
        name,
        ApiKey.OFFSET_FETCH,
        {"group_id": name, "topics": None},
        error_of=lambda answer: int(answer.error_code),
        at_most=_FETCH_OF_ONE_GROUP,
    )
    check(answer.error_code, f"the offsets of group {name} cannot be read")
    found: dict[TopicPartition, tuple[int, int | None]] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            check(each.error_code, f"the offset of group {name} in {topic.name} cannot be read")
            if each.committed_offset != _NO_OFFSET:
                epoch = getattr(each, "committed_leader_epoch", _NO_EPOCH)
                found[TopicPartition(topic.name, each.partition_index)] = (
                    each.committed_offset,
                    None if epoch == _NO_EPOCH else epoch,
                )
    return dict(sorted(found.items()))


async def progress_of(
    client: KafkaClient, name: str, assigned: Iterable[TopicPartition] = ()
) -> list[GroupProgress]:
    """Return a group's progress in partitions that are committed or in `assigned`."""
    committed = await committed_of(client, name)
    places = sorted({*committed, *assigned})
    there = await _still_there(client, places)
    ends = await offsets_at(client, dict.fromkeys(there, LATEST))
    return [GroupProgress(place, committed.get(place), ends.get(place)) for place in places]


async def _still_there(
    client: KafkaClient, places: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return the partitions that were not deleted."""
    places = list(places)
    answer = await client.metadata(sorted({place.topic for place in places}))
    known = {
        TopicPartition(topic.name, each.partition_index)
        for topic in answer.topics
        if not topic.error_code
        for each in topic.partitions
    }
    return [place for place in places if place in known]


async def commit(client: KafkaClient, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group without members.

    Raises:
        ClientError: The group has members.
    """
    topics: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for place, offset in offsets.items():
        topics[place.topic].append({"partition_index": place.partition, "committed_offset": offset})
    body = {
        "group_id": name,
        "topics": [{"name": topic, "partitions": rows} for topic, rows in topics.items()],
    }
    answer = await client.request_of_coordinator(
        name, ApiKey.OFFSET_COMMIT, body, error_of=_first_error, at_most=_COMMIT_BY_NAME
    )
    check(_first_error(answer), f"offsets of group {name} cannot be committed")


def _first_error(answer: Any) -> int:
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    return next((int(code) for code in codes if code), 0)


async def delete_group(client: KafkaClient, name: str) -> None:
    """Delete a group without members, and its offsets.

    Raises:
        ClientError: The group has members, or does not exist.
    """
    answer = await client.request_of_coordinator(
        name,
        ApiKey.DELETE_GROUPS,
        {"groups_names": [name]},
        error_of=lambda answer: int(answer.results[0].error_code),
    )
    check(answer.results[0].error_code, f"group {name} cannot be deleted")


async def delete_offsets(
    client: KafkaClient, name: str, places: Iterable[TopicPartition]
) -> tuple[int, dict[TopicPartition, int]]:
    """Delete a group's committed offsets of partitions.

    Returns:
        The group's error code; if it is 0, also each partition's.
    """
    topics: dict[str, list[dict[str, int]]] = defaultdict(list)
    for place in places:
        topics[place.topic].append({"partition_index": place.partition})
    rows = [{"name": topic, "partitions": each} for topic, each in topics.items()]
    answer = await client.request_of_coordinator(
        name,
        ApiKey.OFFSET_DELETE,
        {"group_id": name, "topics": rows},
        error_of=lambda answer: int(answer.error_code),
    )
    return answer.error_code, {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }
