"""The partitions of members with an endpoint, for queries between processes (interactive queries).

Source: Kafka's EndpointToPartitionsManager, StreamsGroup.buildEndpointToPartitions; KIP-1071.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.topologies.configured_topology import ConfiguredSubtopology


def partitions_by_endpoint(
    group: StreamsGroup,
    updated: StreamsMember,
    replaced_id: str | None,
    topics: Mapping[str, TopicImage],
) -> list[dict[str, Any]]:
    """Return an entry for each member with an endpoint, as a request has changed one of them.

    Args:
        group: The group, before the request's records.
        updated: The member of the request.
        replaced_id: The static member whose place it takes.
        topics: The cluster's topics by name.
    """
    entries = [
        _known(group, member, topics)
        for member_id, member in group.members.items()
        if member.user_endpoint is not None and member_id not in {updated.member_id, replaced_id}
    ]
    if updated.user_endpoint is not None:
        entries.append(_entry(group, updated, topics))
    return entries


def _known(
    group: StreamsGroup, member: StreamsMember, topics: Mapping[str, TopicImage]
) -> dict[str, Any]:
    entry = group.endpoints.get(member.member_id)
    if entry is None:
        entry = group.endpoints[member.member_id] = _entry(group, member, topics)
    return entry


def _entry(
    group: StreamsGroup, member: StreamsMember, topics: Mapping[str, TopicImage]
) -> dict[str, Any]:
    endpoint = member.user_endpoint
    assert endpoint is not None, "it has an endpoint"
    configured = group.configured
    subtopologies = {} if configured is None else configured.subtopologies or {}
    assigned = member.assigned
    copies = {
        name: assigned.standby.get(name, frozenset()) | assigned.warmup.get(name, frozenset())
        for name in {**assigned.standby, **assigned.warmup}
    }
    return {
        "user_endpoint": {"host": endpoint.host, "port": endpoint.port},
        "active_partitions": _partitions(assigned.active, subtopologies, topics),
        "standby_partitions": _partitions(copies, subtopologies, topics),
    }


def _partitions(
    tasks: Mapping[str, Collection[int]],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    topics: Mapping[str, TopicImage],
) -> list[dict[str, Any]]:
    """Return the partitions of the topics that tasks read."""
    entries: list[dict[str, Any]] = []
    for name, numbers in sorted(tasks.items()):
        subtopology = subtopologies.get(name)
        if subtopology is None:
            continue
        for topic in sorted({*subtopology.source_topics, *subtopology.repartition_source_topics}):
            image = topics.get(topic)
            count = 0 if image is None else len(image.partitions)
            partitions = [number for number in sorted(numbers) if number < count]
            if partitions:
                entries.append({"topic": topic, "partitions": partitions})
    return entries
