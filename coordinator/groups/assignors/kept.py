"""The part of the present target assignment that members keep, before balancing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP, partition_count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember


class Kept(NamedTuple):
    """The partitions that members keep and the partitions without an owner.

    Attributes:
        owned: Partitions by topic id, for each member in their order.
        unowned: Partitions without an owner, by topic id; an entry for each topic.
    """

    owned: list[dict[bytes, frozenset[int]]]
    unowned: dict[bytes, set[int]]


def kept_assignments(
    members: Sequence[SubscribedMember],
    topic_ids: Iterable[bytes],
    partition_counts: Mapping[bytes, int],
) -> Steps[Kept]:
    """Return the present assignments without topics that a member no longer subscribes to.

    A partition that does not exist is dropped. If two members own a partition, the first keeps it.

    Args:
        members: The group's members.
        topic_ids: All topics that a member subscribes to.
        partition_counts: Partition counts by topic id.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if a topic does not exist.
    """
    unowned: dict[bytes, set[int]] = {}
    work = 0
    for topic_id in topic_ids:
        count = partition_count_of(topic_id, partition_counts)
        unowned[topic_id] = set(range(count))
        work += 1 + count // 8
        if work >= WORK_PER_STEP:
            work = 0
            yield
    owned: list[dict[bytes, frozenset[int]]] = []
    for member in members:
        kept: dict[bytes, frozenset[int]] = {}
        for topic_id, partitions in member.target.items():
            work += 1 + len(partitions) // 8
            if work >= WORK_PER_STEP:
                work = 0
                yield
            if topic_id not in member.topic_ids:
                continue
            available = unowned[topic_id]
            valid = partitions if partitions <= available else partitions & available
            available -= valid
            if valid:
                kept[topic_id] = valid
        owned.append(kept)
    return Kept(owned, unowned)
