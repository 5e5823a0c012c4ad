"""The assignor `uniform`, for members with different subscriptions.

    keep         members keep the partitions of topics to which they still subscribe
    distribute   partitions without an owner go to the least loaded subscriber of their topic
    balance      partitions move from the most to the least loaded subscriber of their topic

Topics come in the order of their share of partitions per subscriber, the largest first: topics with
a small share can balance what topics with a large share cannot. Balancing repeats over all topics
until none changes, at most `_MOST_PASSES` times.

Source: Kafka's UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP, GroupAssignment
from wirebroker.coordinator.groups.assignors.in_steps import (
    cleared_in_steps,
    signed_halves,
    sorted_in_steps,
)
from wirebroker.coordinator.groups.assignors.kept import kept_assignments
from wirebroker.coordinator.groups.assignors.loads import by_load, givers, receivers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
    from wirebroker.coordinator.groups.assignors.subscribers import Subscribers

# Passes over all topics (MAX_ITERATION_COUNT).
_MOST_PASSES: Final = 16

# What a topic costs besides its partitions and subscribers, compared with a partition.
_WORK_PER_TOPIC: Final = 20

_NO_PARTITIONS: Final[frozenset[int]] = frozenset()


def assign_heterogeneous(
    members: Sequence[SubscribedMember],
    subscribers: Subscribers,
    partition_counts: Mapping[bytes, int],
) -> Steps[GroupAssignment]:
    """Assign topics to different subscribers; see `Assignor`.

    Args:
        members: The group's members.
        subscribers: The subscribers of each topic.
        partition_counts: Partition counts by topic id.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if a topic does not exist.
    """
    kept = yield from kept_assignments(members, subscribers.topic_ids, partition_counts)
    topic_ids = yield from sorted_in_steps(
        subscribers.topic_ids, _topic_rank(subscribers, partition_counts)
    )
    owners = _Owners(subscribers, kept.owned)
    yield from owners.begin(topic_ids)
    yield from owners.distribute(kept.unowned, topic_ids)
    yield from owners.balance(topic_ids)
    yield from cleared_in_steps(kept.unowned)
    yield from owners.end()
    return {member.member_id: owned for member, owned in zip(members, kept.owned, strict=True)}


def _topic_rank(
    subscribers: Subscribers, partition_counts: Mapping[bytes, int]
) -> Callable[[bytes], Any]:
    def rank(topic_id: bytes) -> tuple[float, int, tuple[Any, ...]]:
        subscriber_count = len(subscribers.of(topic_id))
        share = partition_counts[topic_id] / subscriber_count
        return -share, subscriber_count, signed_halves(topic_id)

    return rank


class _Owners:
    """The owners of all partitions, and the members' loads.

    Args:
        subscribers: The subscribers of each topic.
        owned: For each member its partitions by topic id; changed as partitions move.
    """

    __slots__ = ("_loads", "_owned", "_owners", "_subscribers", "_work")

    # _loads: the number of partitions of each member, of all topics.
    # _owners: the members that own partitions, by topic id.
    # _work: since the last yield.

    def __init__(
        self,
        subscribers: Subscribers,
        owned: Sequence[dict[bytes, frozenset[int]]],
    ) -> None:
        self._subscribers = subscribers
        self._owned = owned
        self._owners: dict[bytes, set[int]] = {}
        self._loads: list[int] = []
        self._work = 0

    def begin(self, topic_ids: Iterable[bytes]) -> Steps[None]:
        """Find the owners and the loads."""
        for topic_id in topic_ids:
            self._owners[topic_id] = set()
            if self._is_due(1):
                yield
        for position, owned in enumerate(self._owned):
            load = 0
            for topic_id, partitions in owned.items():
                self._owners[topic_id].add(position)
                load += len(partitions)
                if self._is_due(1):
                    yield
            self._loads.append(load)

    def end(self) -> Steps[None]:
        """Release what this object holds."""
        yield from cleared_in_steps(self._owners)

    def distribute(
        self, unowned: Mapping[bytes, set[int]], topic_ids: Iterable[bytes]
    ) -> Steps[None]:
        """Give partitions without an owner to the least loaded subscribers of their topic."""
        for topic_id in topic_ids:
            partitions = sorted(unowned[topic_id])
            work = 1
            if partitions:
                subscribers = self._subscribers.of(topic_id)
                work = _WORK_PER_TOPIC + len(subscribers) // 8
                self._add(topic_id, (yield from self._receive(subscribers, partitions)))
            if self._is_due(work):
                yield

    def _receive(
        self, subscribers: Sequence[int], partitions: list[int]
    ) -> Steps[dict[int, list[int]]]:
        """Return the partitions that each subscriber receives."""
        loads = self._loads
        if len(partitions) == 1:
            # The first of the receivers below, without sorting.
            receiver = min(subscribers, key=loads.__getitem__)
            loads[receiver] += 1
            return {receiver: partitions}
        received: dict[int, list[int]] = {}
        next_receivers = receivers(by_load(subscribers, loads), loads)
        for partition in partitions:
            receiver, _ = next(next_receivers)
            loads[receiver] += 1
            received.setdefault(receiver, []).append(partition)
            if self._is_due(1):
                yield
        return received

    def balance(self, topic_ids: Sequence[bytes]) -> Steps[None]:
        """Balance the topics until a pass over all of them changes none."""
        last_changed = 0
        for passes in range(_MOST_PASSES):
            for number, topic_id in enumerate(topic_ids):
                if passes and number == last_changed:
                    return
                if not self._is_balanced(topic_id):
                    has_changed = yield from self._balance_topic(topic_id)
                    last_changed = number if has_changed else last_changed
                if self._is_due(1 + len(self._subscribers.of(topic_id)) // 8):
                    yield

    def _is_balanced(self, topic_id: bytes) -> bool:
        """Return whether no owner has two partitions more than another subscriber."""
        load_of = self._loads.__getitem__
        lowest = min(map(load_of, self._subscribers.of(topic_id)))
        return max(map(load_of, self._owners[topic_id]), default=0) - lowest <= 1

    def _balance_topic(self, topic_id: bytes) -> Steps[bool]:
        """Move partitions to less loaded subscribers; return whether one has moved."""
        loads = self._loads
        owners = self._owners[topic_id]
        # Ascending; the highest moves first, and a partition moves once.
        movable = {owner: sorted(self._owned[owner][topic_id]) for owner in owners}
        received: dict[int, list[int]] = {}
        ordered = by_load(self._subscribers.of(topic_id), loads)
        next_receivers = receivers(tuple(ordered), loads)
        for giver, giver_load in givers(ordered, loads, lambda member: bool(movable.get(member))):
            receiver, receiver_load = next(next_receivers)
            if giver_load - receiver_load <= 1:
                break
            loads[giver] -= 1
            loads[receiver] += 1
            received.setdefault(receiver, []).append(movable[giver].pop())
            if self._is_due(1):
                yield
        for owner, partitions in movable.items():
            if not partitions:
                del self._owned[owner][topic_id]
                owners.remove(owner)
            elif len(partitions) < len(self._owned[owner][topic_id]):
                self._owned[owner][topic_id] = frozenset(partitions)
        self._add(topic_id, received)
        if self._is_due(_WORK_PER_TOPIC + len(ordered)):
            yield
        return bool(received)

    def _add(self, topic_id: bytes, received: Mapping[int, list[int]]) -> None:
        self._owners[topic_id].update(received)
        for receiver, partitions in received.items():
            owned = self._owned[receiver]
            owned[topic_id] = owned.get(topic_id, _NO_PARTITIONS).union(partitions)

    def _is_due(self, work: int) -> bool:
        """Count work; return whether a step is over."""
        self._work += work
        if self._work < WORK_PER_STEP:
            return False
        self._work = 0
        return True
