"""The partitions of members with an endpoint, for queries between processes (interactive queries).

Source: Kafka's EndpointToPartitionsManager, StreamsGroup.buildEndpointToPartitions; KIP-1071.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.topologies.configured_topology import (
        ConfiguredSubtopology,
        ConfiguredTopology,
    )


# Partitions in one response; later members of the group are left out.
MOST_PARTITIONS: Final = 500_000


def partitions_by_endpoint(
    group: StreamsGroup,
    updated: StreamsMember,
    replaced_id: str | None,
    topics: Mapping[str, TopicImage],
) -> Steps[list[dict[str, Any]]]:
    """Return an entry for each member with an endpoint, as a request has changed one of them.

    The steps may run after the request: they use the group as it is now.

    Args:
        group: The group, before the request's records.
        updated: The member of the request.
        replaced_id: The static member whose place it takes.
        topics: The cluster's topics by name.
    """
    configured = group.configured
    subtopologies = {} if configured is None else configured.subtopologies or {}
    others = [
        member
        for member_id, member in group.members.items()
        if member.user_endpoint is not None and member_id not in {updated.member_id, replaced_id}
    ]
    return _entries(group, others, updated, _Readers(configured, subtopologies, topics))


class _Readers(NamedTuple):
    """The topics of tasks.

    Attributes:
        configured: The topology that `subtopologies` come from.
        topics: The cluster's topics by name.
    """

    configured: ConfiguredTopology | None
    subtopologies: Mapping[str, ConfiguredSubtopology]
    topics: Mapping[str, TopicImage]


def _entries(
    group: StreamsGroup,
    others: Sequence[StreamsMember],
    updated: StreamsMember,
    readers: _Readers,
) -> Steps[list[dict[str, Any]]]:
    entries: list[dict[str, Any]] = []
    room = MOST_PARTITIONS
    for member in others:
        entry = group.endpoints.get(member.member_id)
        if entry is None or group.members.get(member.member_id) is not member:
            entry = yield from _entry(member, readers)
            is_current = group.configured is readers.configured
            if is_current and group.members.get(member.member_id) is member:
                group.endpoints[member.member_id] = entry
        room -= _partition_count(entry)
        if room < 0:
            break
        entries.append(entry)
        yield
    if updated.user_endpoint is not None:
        entries.append((yield from _entry(updated, readers)))
    return entries


def _partition_count(entry: Mapping[str, Any]) -> int:
    return sum(
        len(topic["partitions"])
        for role in ("active_partitions", "standby_partitions")
        for topic in entry[role]
    )


def _entry(member: StreamsMember, readers: _Readers) -> Steps[dict[str, Any]]:
    endpoint = member.user_endpoint
    assert endpoint is not None, "it has an endpoint"
    assigned = member.assigned
    copies = {
        name: assigned.standby.get(name, frozenset()) | assigned.warmup.get(name, frozenset())
        for name in {**assigned.standby, **assigned.warmup}
    }
    return {
        "user_endpoint": {"host": endpoint.host, "port": endpoint.port},
        "active_partitions": (yield from _partitions(assigned.active, readers)),
        "standby_partitions": (yield from _partitions(copies, readers)),
    }


def _partitions(
    tasks: Mapping[str, Collection[int]], readers: _Readers
) -> Steps[list[dict[str, Any]]]:
    """Return the partitions of the topics that tasks read."""
    entries: list[dict[str, Any]] = []
    for name, numbers in sorted(tasks.items()):
        subtopology = readers.subtopologies.get(name)
        if subtopology is None:
            continue
        ordered = sorted(numbers)
        for topic in sorted({*subtopology.source_topics, *subtopology.repartition_source_topics}):
            image = readers.topics.get(topic)
            count = 0 if image is None else len(image.partitions)
            # Most topics have all the partitions, and share the list.
            end = bisect_left(ordered, count)
            if end:
                partitions = ordered if end == len(ordered) else ordered[:end]
                entries.append({"topic": topic, "partitions": partitions})
            yield
    return entries
