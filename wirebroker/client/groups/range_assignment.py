"""Assignment by range, for a group that this client leads.

    a topic of 5 partitions, members A and B:    A: 0 1 2    B: 3 4

Source: Kafka's RangeAssignor ("range" in the protocol), without racks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.client.topics.leaders import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def assigned_by_range(
    subscriptions: Mapping[str, Sequence[str]], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Assign partitions.

    Args:
        subscriptions: Topics by member id.
        partition_counts: By topic; a missing topic has none.

    Returns:
        Each member's partitions, possibly none.
    """
    shares: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic in sorted({topic for topics in subscriptions.values() for topic in topics}):
        members = sorted(member for member, topics in subscriptions.items() if topic in topics)
        per_member, remainder = divmod(partition_counts.get(topic, 0), len(members))
        first = 0
        for index, member in enumerate(members):
            last = first + per_member + (index < remainder)
            shares[member] += [TopicPartition(topic, number) for number in range(first, last)]
            first = last
    return shares
