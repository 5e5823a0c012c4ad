"""The assignor `uniform`: equal numbers of partitions, with few partitions moved.

Source: Kafka's UniformAssignor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.groups.assignors.heterogeneous import assign_heterogeneous
from wirebroker.coordinator.groups.assignors.homogeneous import assign_homogeneous
from wirebroker.coordinator.groups.assignors.subscribers import (
    Subscribers,
    members_by_subscription,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment, SubscribedMember


def assign_uniformly(
    members: Sequence[SubscribedMember], partition_counts: Mapping[bytes, int]
) -> Steps[GroupAssignment]:
    """Balance the members' partition counts; see `Assignor`.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if a topic does not exist.
    """
    if not members:
        return {}
    by_subscription = yield from members_by_subscription(members)
    if len(by_subscription) == 1:
        return (yield from assign_homogeneous(members, partition_counts))
    subscribers = Subscribers()
    yield from subscribers.find(by_subscription)
    assignment = yield from assign_heterogeneous(members, subscribers, partition_counts)
    yield from subscribers.release()
    return assignment
