"""The records of streams groups.

Lists are sorted, as in Kafka, so that equal states give equal bytes.

Source: Kafka's StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    KnownRecord,
    WholeGroupKey,
    group_record,
    group_record_tombstone,
)
from wirebroker.coordinator.groups.java_collections import java_order
from wirebroker.coordinator.groups.streams.tasks import task_ids

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.tasks import ActiveTasks, AssignedTasks, Tasks
    from wirebroker.coordinator.groups.topologies.topology import (
        StreamsTopology,
        Subtopology,
        TopologyTopic,
    )


class CurrentTasks(NamedTuple):
    """The current assignment of a member: its epochs, its state and its tasks."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: AssignedTasks
    revoking: AssignedTasks


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Return the record of what a member has joined with."""
    endpoint, tags = member.user_endpoint, member.client_tags
    return group_record(
        GroupMemberKey(GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA, group_id, member.member_id),
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else {"host": endpoint.host, "port": endpoint.port},
        client_tags=[{"key": key, "value": tags[key]} for key in sorted(tags, key=java_order)],
    )


def target_record(group_id: str, member_id: str, tasks: Tasks) -> CoordinatorRecord:
    """Return the record of a member's target assignment."""
    kind = GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER
    key = GroupMemberKey(kind, group_id, member_id)
    record = group_record(
        key,
        active_tasks=task_ids(tasks.active),
        standby_tasks=task_ids(tasks.standby),
        warmup_tasks=task_ids(tasks.warmup),
    )
    assert record.value is not None
    return KnownRecord.of(key, record.value, tasks)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record of the epoch of a target assignment, and the time of its computation."""
    key = WholeGroupKey(GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, group_id)
    return group_record(key, assignment_epoch=epoch, assignment_timestamp=timestamp_ms)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Return the record of a member's epochs, state and tasks."""
    assigned, revoking = member.assigned, member.revoking
    kind = GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT
    key = GroupMemberKey(kind, group_id, member.member_id)
    record = group_record(
        key,
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_with_epochs(assigned.active),
        standby_tasks=task_ids(assigned.standby),
        warmup_tasks=task_ids(assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(revoking.active),
        standby_tasks_pending_revocation=task_ids(revoking.standby),
        warmup_tasks_pending_revocation=task_ids(revoking.warmup),
    )
    assert record.value is not None
    body = CurrentTasks(member.epoch, member.previous_epoch, member.state, assigned, revoking)
    return KnownRecord.of(key, record.value, body)


def _with_epochs(tasks: ActiveTasks) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for subtopology in sorted(tasks):
        epochs = tasks[subtopology]
        partitions = sorted(epochs)
        entries.append(
            {
                "subtopology_id": subtopology,
                "partitions": partitions,
                "assignment_epochs": list(map(epochs.__getitem__, partitions)),
            }
        )
    return entries


def topology_record(group_id: str, topology: StreamsTopology) -> CoordinatorRecord:
    """Return the record of a group's topology."""
    key = WholeGroupKey(GroupRecordKind.STREAMS_GROUP_TOPOLOGY, group_id)
    record = group_record(
        key,
        epoch=topology.epoch,
        subtopologies=list(map(_subtopology, topology.subtopologies.values())),
    )
    assert record.value is not None
    return KnownRecord.of(key, record.value, topology)


def _subtopology(subtopology: Subtopology) -> dict[str, Any]:
    return {
        "subtopology_id": subtopology.subtopology_id,
        "source_topics": subtopology.source_topics,
        "source_topic_regex": subtopology.source_topic_regex,
        "state_changelog_topics": _topics(subtopology.changelog_topics),
        "repartition_sink_topics": subtopology.repartition_sink_topics,
        "repartition_source_topics": _topics(subtopology.repartition_source_topics),
        "copartition_groups": [group._asdict() for group in subtopology.copartition_groups],
    }


def _topics(topics: Iterable[TopologyTopic]) -> list[dict[str, Any]]:
    return [
        {
            "name": topic.name,
            "partitions": topic.partition_count,
            "replication_factor": topic.replication_factor,
            "topic_configs": [{"key": name, "value": value} for name, value in topic.configs],
        }
        for topic in topics
    ]


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the records that delete a member, in the order that replay needs."""
    return [
        group_record_tombstone(GroupMemberKey(kind, group_id, member_id))
        for kind in (
            GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
            GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA,
        )
    ]


def group_tombstones(group_id: str, member_ids: Collection[str]) -> list[CoordinatorRecord]:
    """Return the records that delete a whole group."""

    def of_members(kind: GroupRecordKind) -> list[CoordinatorRecord]:
        return [
            group_record_tombstone(GroupMemberKey(kind, group_id, member_id))
            for member_id in member_ids
        ]

    def of_group(kind: GroupRecordKind) -> CoordinatorRecord:
        return group_record_tombstone(WholeGroupKey(kind, group_id))

    return [
        *of_members(GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT),
        *of_members(GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER),
        of_group(GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA),
        *of_members(GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA),
        of_group(GroupRecordKind.STREAMS_GROUP_METADATA),
        of_group(GroupRecordKind.STREAMS_GROUP_TOPOLOGY),
    ]
