"""The assignor `range`: contiguous partitions of each topic for its subscribers.

Each topic is divided on its own, and its first subscribers get one partition more if it does not
divide evenly. Topics with the same partition count and the same subscribers are divided alike, so
equal partition numbers meet at one member (co-partitioning). The present assignment plays no role:
the order of the subscribers is what keeps the result stable.

Source: Kafka's RangeAssignor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.groups.assignors.assignor import (
    WORK_PER_STEP,
    GroupAssignment,
    partition_count_of,
)
from wirebroker.coordinator.groups.assignors.in_steps import sorted_in_steps
from wirebroker.coordinator.groups.assignors.subscribers import (
    Subscribers,
    members_by_subscription,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember


def assign_ranges(
    members: Sequence[SubscribedMember], partition_counts: Mapping[bytes, int]
) -> Steps[GroupAssignment]:
    """Divide each topic into ranges; see `Assignor`.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if a topic does not exist.
    """
    ordered = yield from sorted_in_steps(members, _rank)
    by_subscription = yield from members_by_subscription(ordered)
    subscribers = Subscribers()
    yield from subscribers.find(by_subscription)
    assignment: GroupAssignment = {member.member_id: {} for member in members}
    assigned = [assignment[member.member_id] for member in ordered]
    ranges_by_shape: dict[tuple[int, int], list[frozenset[int]]] = {}
    work = 0
    for topic_id in subscribers.topic_ids:
        positions = subscribers.of(topic_id)
        shape = partition_count_of(topic_id, partition_counts), len(positions)
        ranges = ranges_by_shape.get(shape)
        if ranges is None:
            ranges = ranges_by_shape[shape] = _ranges(*shape)
            work += shape[0] // 8
        # Without `strict`: there are fewer ranges than subscribers if partitions are fewer.
        for position, partitions in zip(positions, ranges, strict=False):
            assigned[position][topic_id] = partitions
        work += 1 + len(ranges)
        if work >= WORK_PER_STEP:
            work = 0
            yield
    yield from subscribers.release()
    return assignment


def _rank(member: SubscribedMember) -> tuple[bool, bytes]:
    """Return the sort key: static members by instance id, then the others by member id."""
    is_dynamic = member.instance_id is None
    name = member.member_id if member.instance_id is None else member.instance_id
    # Java compares UTF-16 code units.
    return is_dynamic, name.encode("utf-16-be", "surrogatepass")


def _ranges(partition_count: int, member_count: int) -> list[frozenset[int]]:
    """Divide the partitions of a topic; leave out empty ranges."""
    size, larger_count = divmod(partition_count, member_count)
    ranges: list[frozenset[int]] = []
    start = 0
    for number in range(member_count if size else larger_count):
        end = start + size + (number < larger_count)
        ranges.append(frozenset(range(start, end)))
        start = end
    return ranges
