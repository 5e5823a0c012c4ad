"""The assignor `uniform`, for members with equal subscriptions.

Each member gets a quota: the minimum, or one partition more. A member keeps its partitions up to
its quota; the others are given to members below theirs. The quotas with one partition more go to
members that own as many, so that no more partitions move than the balance requires.

Source: Kafka's UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP, GroupAssignment
from wirebroker.coordinator.groups.assignors.in_steps import (
    cleared_in_steps,
    signed_halves,
    sorted_in_steps,
)
from wirebroker.coordinator.groups.assignors.kept import kept_assignments

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember

_NO_PARTITIONS: Final[frozenset[int]] = frozenset()


class _Pool:
    """Partitions without an owner, taken in the order in which they were added."""

    __slots__ = ("_blocks", "_next")

    # _next: the first block with partitions; the earlier ones are empty.

    def __init__(self) -> None:
        # Topic ids, each with partitions in descending order, so that the lowest are popped first.
        self._blocks: list[tuple[bytes, list[int]]] = []
        self._next = 0

    def add(self, topic_id: bytes, partitions: Collection[int]) -> None:
        if partitions:
            self._blocks.append((topic_id, sorted(partitions, reverse=True)))

    def take(self, count: int) -> Iterator[tuple[bytes, list[int]]]:
        """Remove and yield partitions by topic; the pool must have as many."""
        while count:
            topic_id, partitions = self._blocks[self._next]
            taken = partitions[-count:]
            del partitions[-count:]
            if not partitions:
                self._next += 1
            count -= len(taken)
            yield topic_id, taken

    def release(self) -> Steps[None]:
        """Release the empty blocks."""
        yield from cleared_in_steps(self._blocks)


def assign_homogeneous(
    members: Sequence[SubscribedMember], partition_counts: Mapping[bytes, int]
) -> Steps[GroupAssignment]:
    """Assign the topics of one or more members with the same subscription; see `Assignor`.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if a topic does not exist.
    """
    topic_ids = yield from sorted_in_steps(members[0].topic_ids, signed_halves)
    owned, unowned = yield from kept_assignments(members, topic_ids, partition_counts)
    pool = _Pool()
    total = work = 0
    for topic_id in topic_ids:
        total += partition_counts[topic_id]
        partitions = unowned[topic_id]
        pool.add(topic_id, partitions)
        work += 1 + len(partitions) // 8
        if work >= WORK_PER_STEP:
            work = 0
            yield
    wanted_counts = yield from _apply_quotas(owned, total, pool)
    for kept, wanted_count in zip(owned, wanted_counts, strict=True):
        for topic_id, added in pool.take(wanted_count):
            kept[topic_id] = kept.get(topic_id, _NO_PARTITIONS).union(added)
            work += 1 + len(added)
            if work >= WORK_PER_STEP:
                work = 0
                yield
    yield from cleared_in_steps(unowned)
    yield from pool.release()
    return {member.member_id: kept for member, kept in zip(members, owned, strict=True)}


def _apply_quotas(
    owned: list[dict[bytes, frozenset[int]]], total: int, pool: _Pool
) -> Steps[list[int]]:
    """Revoke partitions beyond the quotas; return how many partitions each member lacks."""
    minimum, larger_count = divmod(total, len(owned))
    wanted_counts: list[int] = []
    work = 0
    for position, kept in enumerate(owned):
        size = sum(map(len, kept.values()))
        # The last members must take the larger quotas that no earlier member needed.
        is_larger = larger_count > 0 and (size > minimum or len(owned) - position <= larger_count)
        larger_count -= is_larger
        quota = minimum + is_larger
        if size > quota:
            yield from _revoke(kept, quota, pool)
        wanted_counts.append(max(0, quota - size))
        work += 1 + len(kept)
        if work >= WORK_PER_STEP:
            work = 0
            yield
    return wanted_counts


def _revoke(kept: dict[bytes, frozenset[int]], quota: int, pool: _Pool) -> Steps[None]:
    """Keep the first partitions of a member, by topic id and number; add the others to the pool."""
    topic_ids = yield from sorted_in_steps(kept, signed_halves)
    for count, topic_id in enumerate(topic_ids, 1):
        partitions = kept[topic_id]
        if len(partitions) > quota:
            ordered = sorted(partitions)
            pool.add(topic_id, ordered[quota:])
            if quota:
                kept[topic_id] = frozenset(ordered[:quota])
            else:
                del kept[topic_id]
        quota -= min(quota, len(partitions))
        if count % WORK_PER_STEP == 0:
            yield
