"""The next step of a member from its current to its target assignment.

    has partitions outside its target   give them up first: UNREVOKED_PARTITIONS, epoch unchanged
    it has given them up                the target's epoch, and the partitions that are free;
                                        UNRELEASED_PARTITIONS while others are not, else STABLE

So a partition is never assigned to two members, and each member moves on with its own heartbeats.

Source: Kafka's CurrentAssignmentBuilder; KIP-848.
"""

from __future__ import annotations

from collections.abc import (  # noqa: TC003 - compiled tuples look for them
    Callable,
    Collection,
    Container,
    Mapping,
    Sequence,
)
from typing import Any, NamedTuple

from wirebroker.base.clock import Steps, in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP
from wirebroker.coordinator.groups.consumer.consumer_member import (
    NO_PARTITIONS,
    AssignedPartitions,
    ConsumerMember,
    MemberState,
)

_NONE: Mapping[int, int] = {}
_NO_INDEXES: frozenset[int] = frozenset()


class MemberTarget(NamedTuple):
    """The target of a member's next step.

    Attributes:
        epoch: The assignment epoch.
        partitions: The target assignment by topic id.
        topic_ids: The topics that the member subscribes to now. It gives up others, although
            the target assignment may still have them.
        has_subscription_changed: Whether this request has changed them.
        owned: The partitions that the member reports; None: not reported.
        owned_of: The partitions of a topic that have owners, with the owners' epochs.
    """

    epoch: int
    partitions: Mapping[bytes, frozenset[int]]
    topic_ids: Container[bytes]
    has_subscription_changed: bool
    owned: Sequence[Any] | None
    owned_of: Callable[[bytes], Mapping[int, int]]


def reconcile(member: ConsumerMember, target: MemberTarget) -> ConsumerMember:
    """Return the member after its next step; see `reconcile_in_steps`."""
    return in_one_go(reconcile_in_steps(member, target))


def reconcile_in_steps(member: ConsumerMember, target: MemberTarget) -> Steps[ConsumerMember]:
    """Return the member after its next step, or the same if there is none.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH: its state was written by a later version, so it has to
            rejoin.
    """
    state = member.state
    if state is MemberState.STABLE and member.epoch == target.epoch:
        return _give_up_unsubscribed(member, target)
    if state is MemberState.UNREVOKED_PARTITIONS and _owns_any(member.revoking, target.owned):
        return _give_up_unsubscribed(member, target)
    if state is MemberState.UNKNOWN:
        if target.owned is None or target.owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its "
                "partitions and rejoin.",
            )
        return (yield from _next_step(member, target, epoch=target.epoch))
    return (yield from _next_step(member, target, epoch=member.epoch))


def _give_up_unsubscribed(member: ConsumerMember, target: MemberTarget) -> ConsumerMember:
    """Give up the partitions of topics that the member no longer subscribes to."""
    if not target.has_subscription_changed:
        return member
    assigned = {
        topic_id: epochs
        for topic_id, epochs in member.assigned.items()
        if topic_id in target.topic_ids
    }
    if len(assigned) == len(member.assigned):
        return member
    revoking = dict(member.revoking)
    for topic_id, epochs in member.assigned.items():
        if topic_id not in assigned:
            revoking[topic_id] = {**revoking.get(topic_id, _NONE), **epochs}
    if not _owns_any(revoking, target.owned):
        return member.with_epoch(member.epoch, assigned=assigned)
    return member.with_epoch(
        member.epoch,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=assigned,
        revoking=revoking,
    )


def _next_step(
    member: ConsumerMember, target: MemberTarget, *, epoch: int
) -> Steps[ConsumerMember]:
    """Return the member after its next step; `epoch` is its epoch while it gives up partitions."""
    assigned: dict[bytes, Mapping[int, int]] = {}
    revoking: dict[bytes, Mapping[int, int]] = {}
    added: dict[bytes, dict[int, int]] = {}
    is_complete = True
    owned_of = target.owned_of
    work = 0
    for topic_id in {**target.partitions, **member.assigned}:
        wanted = target.partitions.get(topic_id, _NO_INDEXES)
        work += 1 + max(len(wanted), len(member.assigned.get(topic_id, _NONE)))
        if work >= WORK_PER_STEP:
            work = 0
            yield
        if topic_id not in target.topic_ids:
            wanted = _NO_INDEXES
        current = member.assigned.get(topic_id)
        if current is None:
            # A first assignment may have thousands of topics, which usually have no owners.
            free = _free(member, target, topic_id, wanted) if owned_of(topic_id) else wanted
            is_complete = is_complete and len(free) == len(wanted)
            if free:
                added[topic_id] = dict.fromkeys(free, target.epoch)
            continue
        kept = current if current.keys() <= wanted else _part_of(current, wanted)
        if kept:
            assigned[topic_id] = kept
        if len(kept) < len(current):
            revoking[topic_id] = _part_of(current, current.keys() - wanted)
        missing = wanted.difference(current) if current else wanted
        free = _free(member, target, topic_id, missing)
        is_complete = is_complete and len(free) == len(missing)
        if free:
            new = dict.fromkeys(free, target.epoch)
            added[topic_id] = {**kept, **new} if kept else new
    if _owns_any(revoking, target.owned):
        return member.with_epoch(
            epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=assigned,
            revoking=revoking,
        )
    return member.with_epoch(
        target.epoch,
        state=MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS,
        assigned={**assigned, **added},
        revoking=NO_PARTITIONS,
    )


def _part_of(epochs: Mapping[int, int], indexes: Collection[int]) -> dict[int, int]:
    return {index: since for index, since in epochs.items() if index in indexes}


def _free(
    member: ConsumerMember, target: MemberTarget, topic_id: bytes, indexes: frozenset[int]
) -> frozenset[int]:
    """Return the partitions without an owner, or that only this member has and gives up."""
    owned = target.owned_of(topic_id)
    if not owned:
        return indexes
    return indexes.difference(owned.keys() - member.revoking.get(topic_id, _NONE).keys())


def _owns_any(partitions: AssignedPartitions, owned: Sequence[Any] | None) -> bool:
    """Return whether the member reports any of these partitions; unreported ones are owned."""
    if not partitions:
        return False
    if owned is None:
        return True
    # A member may report 200,000 partitions.
    return any(
        not partitions.get(topic.topic_id, _NONE).keys().isdisjoint(topic.partitions)
        for topic in owned
    )
