"""StreamsGroupDescribe: a group with its topology, its members and their tasks.

Source: Kafka's StreamsGroup.asDescribedGroup, StreamsGroupMember.asStreamsGroupDescribeMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import collected
from wirebroker.coordinator.groups import streams_configs
from wirebroker.coordinator.groups.java_collections import java_order
from wirebroker.coordinator.groups.streams.streams_joining import existing_group
from wirebroker.coordinator.groups.streams.task_offsets import (
    NO_OFFSETS,
    TaskOffsets,
    offsets_in_steps,
)
from wirebroker.coordinator.groups.streams.tasks import (
    NO_TASKS,
    AssignedTasks,
    Tasks,
    task_ids_in_steps,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.topologies.configured_topology import ConfiguredTopology
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology, TopologyTopic


def describe(shard: ServingShard, group_id: str) -> Steps[dict[str, Any]]:
    """Return the steps that make a group of a response, as it is now.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.
    """
    group = existing_group(shard, group_id)
    head = {
        "group_id": group_id,
        "group_state": group.state,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": streams_configs.assignor_name(
            shard.settings.streams, shard.image, group_id
        ),
    }
    members = [
        (
            member,
            group.target.get(member_id, NO_TASKS),
            group.task_offsets.get(member_id, NO_OFFSETS),
        )
        # The newest member first.
        for member_id, member in reversed(group.members.items())
    ]
    return _in_steps(head, _topology(group.topology, group.configured), members)


def _in_steps(
    head: dict[str, Any],
    topology: Steps[dict[str, Any] | None],
    members: Sequence[tuple[StreamsMember, Tasks, TaskOffsets]],
) -> Steps[dict[str, Any]]:
    head["topology"] = yield from topology
    described: list[dict[str, Any]] = []
    for member, target, offsets in members:
        described.append((yield from _member(member, target, offsets)))
        yield
    return {**head, "members": described}


def _topology(
    topology: StreamsTopology | None, configured: ConfiguredTopology | None
) -> Steps[dict[str, Any] | None]:
    """Return the topology, with partition counts as far as they are known."""
    if topology is None:
        return None
    counted = {}
    if configured is not None and configured.is_ready:
        counted = {
            topic.name: topic
            for subtopology in (configured.subtopologies or {}).values()
            for topic in subtopology.internal_topics()
        }
    subtopologies: list[dict[str, Any]] = []
    for name in _sorted(topology.subtopologies):
        subtopology = topology.subtopologies[name]
        changelogs, repartition = (
            [counted.get(topic.name, topic) for topic in topics]
            for topics in (subtopology.changelog_topics, subtopology.repartition_source_topics)
        )
        subtopologies.append(
            {
                "subtopology_id": name,
                "source_topics": _sorted(subtopology.source_topics),
                "repartition_sink_topics": _sorted(subtopology.repartition_sink_topics),
                "state_changelog_topics": (yield from _topics(changelogs)),
                "repartition_source_topics": (yield from _topics(repartition)),
            }
        )
        yield
    return {"epoch": topology.epoch, "subtopologies": subtopologies}


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=java_order)


def _topics(topics: Iterable[TopologyTopic]) -> Steps[list[dict[str, Any]]]:
    ordered = sorted(topics, key=lambda topic: java_order(topic.name))
    return (yield from collected(map(_topic, ordered)))


def _topic(topic: TopologyTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partition_count,
        "replication_factor": topic.replication_factor,
        "topic_configs": [{"key": name, "value": value} for name, value in topic.configs],
    }


def _member(member: StreamsMember, target: Tasks, offsets: TaskOffsets) -> Steps[dict[str, Any]]:
    endpoint = member.user_endpoint
    return {
        "member_id": member.member_id,
        "member_epoch": member.epoch,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topology_epoch": member.topology_epoch,
        "process_id": member.process_id,
        "user_endpoint": None
        if endpoint is None
        else {"host": endpoint.host, "port": endpoint.port},
        "client_tags": [{"key": key, "value": value} for key, value in member.client_tags.items()],
        "task_offsets": (yield from offsets_in_steps(offsets.offsets)),
        "task_end_offsets": (yield from offsets_in_steps(offsets.end_offsets)),
        "assignment": (yield from _assignment(member.assigned)),
        "target_assignment": (yield from _assignment(target)),
        "is_classic": False,
    }


def _assignment(tasks: Tasks | AssignedTasks) -> Steps[dict[str, Any]]:
    return {
        "active_tasks": (yield from task_ids_in_steps(tasks.active)),
        "standby_tasks": (yield from task_ids_in_steps(tasks.standby)),
        "warmup_tasks": (yield from task_ids_in_steps(tasks.warmup)),
    }
