"""The assignor `simple` of share groups: members share partitions.

With more members than partitions, each partition gets several members; otherwise one. Members keep
what they have, up to their part.

    different subscriptions   each topic is shared among its subscribers, on its own
    equal subscriptions       all topics together

Source: Kafka's SimpleAssignor, SimpleHomogeneousAssignmentBuilder,
SimpleHeterogeneousAssignmentBuilder; KIP-932.
"""

from __future__ import annotations

from collections import deque
from math import ceil
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP
from wirebroker.coordinator.groups.assignors.in_steps import cleared_in_steps, sorted_in_steps
from wirebroker.coordinator.groups.assignors.subscribers import (
    Subscribers,
    members_by_subscription,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment, SubscribedMember

    _Partition = tuple[bytes, int]

_NO_PARTITIONS: Final[frozenset[int]] = frozenset()


def assign_shared(
    members: Sequence[SubscribedMember], assignable: Mapping[bytes, Collection[int]]
) -> Steps[GroupAssignment]:
    """Return the new target assignment of a share group.

    Args:
        members: The group's members.
        assignable: The partitions that may be assigned, by id of a subscribed topic.
    """
    if not members:
        return {}
    by_subscription = yield from members_by_subscription(members)
    subscribers = Subscribers()
    yield from subscribers.find(by_subscription)
    topic_ids = yield from sorted_in_steps(subscribers.topic_ids, bytes)
    topics = frozenset(topic_ids)
    pools: list[tuple[Sequence[bytes], Sequence[int]]]
    if len(by_subscription) == 1:
        pools = [(topic_ids, range(len(members)))]
    else:
        pools = [([topic_id], subscribers.of(topic_id)) for topic_id in topic_ids]
    assigned: list[dict[bytes, set[int]]] = [{} for _ in members]
    for pooled, positions in pools:
        pool = _Pool(members, positions)
        yield from pool.fill(pooled, assignable)
        yield from pool.deal(assigned)
        yield from cleared_in_steps(pool.holders)
    yield from subscribers.release()
    result: GroupAssignment = {}
    work = 0
    for member, partitions in zip(members, assigned, strict=True):
        for topic_id in member.target.keys() & assignable.keys():
            # As in Kafka, a topic of which a member has lost all partitions stays, empty.
            if topic_id in topics:
                partitions.setdefault(topic_id, set())
        result[member.member_id] = {
            topic_id: frozenset(indexes) for topic_id, indexes in partitions.items()
        }
        work += 1 + sum(map(len, partitions.values())) // 8
        if work >= WORK_PER_STEP:
            work = 0
            yield
    return result


class _Pool:
    """Partitions that some members share.

    Attributes:
        holders: Positions of the members that have each partition.
    """

    __slots__ = ("_members", "_positions", "holders")

    def __init__(self, members: Sequence[SubscribedMember], positions: Sequence[int]) -> None:
        self._members = members
        self._positions = positions
        self.holders: dict[_Partition, list[int]] = {}

    def fill(
        self, topic_ids: Sequence[bytes], assignable: Mapping[bytes, Collection[int]]
    ) -> Steps[None]:
        """Add the partitions of topics, and the members that have them."""
        for topic_id in topic_ids:
            partitions = yield from sorted_in_steps(assignable.get(topic_id, ()), int)
            for count, index in enumerate(partitions, 1):
                self.holders[topic_id, index] = []
                if count % WORK_PER_STEP == 0:
                    yield
        count = 0
        for position in self._positions:
            target = self._members[position].target
            for topic_id in topic_ids:
                for index in target.get(topic_id, _NO_PARTITIONS):
                    holders = self.holders.get((topic_id, index))
                    if holders is not None:
                        holders.append(position)
                    count += 1
                    if count % WORK_PER_STEP == 0:
                        yield

    def deal(self, assigned: list[dict[bytes, set[int]]]) -> Steps[None]:
        """Take surplus partitions away, assign missing ones, and add the result to `assigned`."""
        if not self.holders:
            return
        sharing = -(-len(self._positions) // len(self.holders))
        quotas = self._quotas(sharing)
        lacking = yield from self._revoke(sharing, quotas)
        waiting = deque(position for position in self._positions if lacking[position])
        work = 0
        for (topic_id, index), holders in self.holders.items():
            _add_holders(holders, sharing, lacking, waiting)
            for position in holders:
                assigned[position].setdefault(topic_id, set()).add(index)
            work += 1 + len(holders)
            if work >= WORK_PER_STEP:
                work = 0
                yield

    def _quotas(self, sharing: int) -> dict[int, int]:
        """Return the number of partitions of each member; they differ by at most one."""
        part = sharing * len(self.holders) / len(self._positions)
        return {
            position: ceil(part * (number + 1)) - ceil(part * number)
            for number, position in enumerate(self._positions)
        }

    def _revoke(self, sharing: int, quotas: dict[int, int]) -> Steps[dict[int, int]]:
        """Remove members from partitions; return how many partitions each member lacks.

        As in Kafka, members lose their first partitions, and partitions their first members.
        """
        lacking = dict(quotas)
        work = 0
        for holders in self.holders.values():
            for position in holders:
                lacking[position] -= 1
            work += 1 + len(holders)
            if work >= WORK_PER_STEP:
                work = 0
                yield
        for holders in self.holders.values():
            work += 1 + len(holders)
            for position in holders[:]:
                if lacking[position] < 0:
                    holders.remove(position)
                    lacking[position] += 1
            for position in holders[:-sharing]:
                lacking[position] += 1
            del holders[:-sharing]
            if work >= WORK_PER_STEP:
                work = 0
                yield
        return lacking


def _add_holders(
    holders: list[int], sharing: int, lacking: dict[int, int], waiting: deque[int]
) -> None:
    """Give a partition to members that lack some, in turn."""
    present = set(holders)
    passed = 0
    while len(holders) < sharing and passed < len(waiting):
        position = waiting[0]
        if position in present:
            passed += 1
            waiting.rotate(-1)
            continue
        holders.append(position)
        lacking[position] -= 1
        waiting.rotate(-1)
        if not lacking[position]:
            waiting.pop()
