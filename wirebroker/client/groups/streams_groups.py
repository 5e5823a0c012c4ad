"""Streams groups (KIP-1071): topology, members and their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, check, did_you_mean
from wirebroker.client.groups.groups import list_groups
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.client.groups.groups import ListedGroup
    from wirebroker.client.kafka_client import KafkaClient

STREAMS: Final = "streams"
# The first version that describes the topology (KIP-1331).
_WITH_TOPOLOGY: Final = 1
# Values of TopologyDescriptionStatus.
NOT_STORED, FAILED, AVAILABLE = 1, 2, 3


class StreamsTasks(NamedTuple):
    """The tasks of one subtopology."""

    subtopology: str
    partitions: list[int]


class StreamsAssignment(NamedTuple):
    """The tasks of a member."""

    active: list[StreamsTasks]
    standby: list[StreamsTasks]
    warmup: list[StreamsTasks]


class DescribedStreamsMember(NamedTuple):
    """A member; `is_classic` if it still uses the classic protocol."""

    member_id: str
    epoch: int
    client_id: str
    host: str
    process_id: str
    is_classic: bool
    assignment: StreamsAssignment
    target: StreamsAssignment


class DescribedSubtopology(NamedTuple):
    """The topics of a subtopology; the second and third are internal."""

    name: str
    source_topics: list[str]
    repartition_topics: list[str]
    changelog_topics: list[str]


class DescribedStreamsGroup(NamedTuple):
    """A streams group.

    Attributes:
        topology: The description that a plugin of the broker stored, as the response has it.
        topology_status: NOT_STORED, FAILED or AVAILABLE, if it was requested.
    """

    name: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int
    assignor: str | None
    subtopologies: list[DescribedSubtopology]
    members: list[DescribedStreamsMember]
    topology: Any
    topology_status: int

    def source_topics(self) -> set[str]:
        """Return the topics that the tasks read, also internal ones."""
        return {
            topic
            for subtopology in self.subtopologies
            for topic in (*subtopology.source_topics, *subtopology.repartition_topics)
        }

    def read_partitions(self) -> list[list[TopicPartition]]:
        """Return the partitions that each member reads by its active tasks."""
        topics = {
            subtopology.name: (*subtopology.source_topics, *subtopology.repartition_topics)
            for subtopology in self.subtopologies
        }
        return [
            [
                TopicPartition(topic, partition)
                for tasks in member.assignment.active
                for topic in topics.get(tasks.subtopology, ())
                for partition in tasks.partitions
            ]
            for member in self.members
        ]


async def list_streams_groups(client: KafkaClient) -> list[ListedGroup]:
    """Return the streams groups, by name."""
    return [group for group in await list_groups(client) if group.kind == STREAMS]


async def describe_streams_group(
    client: KafkaClient, name: str, *, has_topology: bool = False
) -> DescribedStreamsGroup:
    """Return a streams group with its members; with `has_topology` also the description.

    Raises:
        ClientError: It does not exist, or the cluster has no streams groups.
    """

    def body(version: int) -> dict[str, Any]:
        fields: dict[str, Any] = {"group_ids": [name]}
        if version >= _WITH_TOPOLOGY:
            fields["include_topology_description"] = has_topology
        return fields

    answer = await client.request_of_coordinator(
        name,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        body,
        error_of=lambda answer: int(answer.groups[0].error_code),
    )
    (row,) = answer.groups
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        group_names = [group.name for group in await list_streams_groups(client)]
        raise ClientError(
            f"there is no streams group {name}{did_you_mean(name, group_names)}",
            code=row.error_code,
            broker_message=row.error_message,
        )
    check(row.error_code, f"streams group {name} cannot be described", row.error_message)
    return streams_description(row)


def streams_description(row: Any) -> DescribedStreamsGroup:
    """Return a group of a StreamsGroupDescribeResponse, without an error."""
    return DescribedStreamsGroup(
        row.group_id,
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        -1 if row.topology is None else row.topology.epoch,
        getattr(row, "assignor_name", None),
        [] if row.topology is None else _subtopologies(row.topology.subtopologies or ()),
        [_member(member) for member in row.members],
        getattr(row, "topology_description", None),
        getattr(row, "topology_description_status", 0),
    )


def _subtopologies(rows: Iterable[Any]) -> list[DescribedSubtopology]:
    return [
        DescribedSubtopology(
            row.subtopology_id,
            list(row.source_topics),
            [topic.name for topic in row.repartition_source_topics],
            [topic.name for topic in row.state_changelog_topics],
        )
        for row in rows
    ]


def _member(row: Any) -> DescribedStreamsMember:
    return DescribedStreamsMember(
        row.member_id,
        row.member_epoch,
        row.client_id,
        row.client_host.removeprefix("/"),
        row.process_id,
        row.is_classic,
        _assignment(row.assignment),
        _assignment(row.target_assignment),
    )


def _assignment(row: Any) -> StreamsAssignment:
    return StreamsAssignment(
        *(
            [StreamsTasks(tasks.subtopology_id, list(tasks.partitions)) for tasks in of_kind]
            for of_kind in (row.active_tasks, row.standby_tasks, row.warmup_tasks)
        )
    )
