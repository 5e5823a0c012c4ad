"""The next step of a member with thousands of topics, computed in slices before its heartbeat runs.

An operation cannot pause, so it must not compute much. The computation in slices starts from the
state at one moment. If the member or its target changes meanwhile, it starts again; after some
attempts, the operation computes the step itself. The assignments of other members may change
meanwhile. If they give up partitions, this member gets these with its next heartbeat. If they get
partitions that this step would add, the step is computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.coordinator.groups.consumer import joining
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    MemberState,
)
from wirebroker.coordinator.groups.consumer.consumer_records import current_record_in_steps
from wirebroker.coordinator.groups.consumer.reconciliation import MemberTarget, reconcile_in_steps
from wirebroker.coordinator.groups.described_topics import assigned_in_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.consumer.heartbeat_request import ConsumerHeartbeat
    from wirebroker.coordinator.groups.consumer.joining import StaticReturn
    from wirebroker.coordinator.groups.consumer.partition_epochs import PartitionEpochs
    from wirebroker.coordinator.groups.serving_shard import ServingShard

# Up to this number of topics the operation itself computes the step: 1 ms.
_FEW: Final = 500
# Attempts to prepare a step before the operation computes it.
_MOST_ATTEMPTS: Final = 3
_NONE: Final[Mapping[int, int]] = {}


class _SubscribedIds:
    """The ids of topics that a member subscribes to; `in` looks up the name of an id."""

    __slots__ = ("_names", "_topics")

    def __init__(self, topics: Mapping[bytes, TopicImage], names: frozenset[str]) -> None:
        self._names = names
        self._topics = topics

    def __contains__(self, topic_id: Any) -> bool:
        topic = self._topics.get(topic_id)
        return topic is not None and topic.name in self._names


class StepInputs(NamedTuple):
    """The state from which a step is computed.

    Attributes:
        member: The member before the step.
        aim: The target of the step.
        names: The topics that it subscribes to.
        topics: The cluster's topics.
        owners: The owners of the group's partitions.
        version: The version of the owners.
    """

    member: ConsumerMember
    aim: MemberTarget
    names: frozenset[str]
    topics: Mapping[bytes, TopicImage]
    owners: PartitionEpochs
    version: int

    def are(self, other: StepInputs) -> bool:
        """Return whether the other inputs are the same."""
        is_same_moment = self.version == other.version and self.topics is other.topics
        return is_same_moment and self.are_of_same_step(other)

    def are_of_same_step(self, other: StepInputs) -> bool:
        """Return whether the other inputs differ at most in the assignments of other members.

        The topics may be older: the step then equals that of a heartbeat before they changed.
        """
        aim, other_aim = self.aim, other.aim
        return (
            self.owners is other.owners
            and aim.epoch == other_aim.epoch
            and aim.partitions is other_aim.partitions
            and aim.has_subscription_changed is other_aim.has_subscription_changed
            and aim.owned is other_aim.owned
            and (self.names is other.names or self.names == other.names)
            and self.member == other.member
        )


class PreparedStep(NamedTuple):
    """A step.

    Attributes:
        inputs: The state from which it was computed.
        member: The member after the step.
        record: The record of the member after the step; None if nothing changes.
        assignment: The assignment in the response.
        returned: The replacement of the predecessor before the step, for a returning static member.
    """

    inputs: StepInputs
    member: ConsumerMember
    record: CoordinatorRecord | None
    assignment: Mapping[str, Any]
    returned: StaticReturn | None = None

    def adds_any_of(self, topic_ids: set[bytes]) -> bool:
        """Return whether other members now own partitions of these topics that this step adds."""
        before, after, owners = self.inputs.member, self.member.assigned, self.inputs.owners
        for topic_id in topic_ids & after.keys():
            added = after[topic_id].keys() - before.assigned.get(topic_id, _NONE).keys()
            if added:
                added -= before.revoking.get(topic_id, _NONE).keys()
                if not added.isdisjoint(owners.of_topic(topic_id)):
                    return True
        return False


def inputs_of(
    shard: ServingShard,
    group: ConsumerGroup,
    member: ConsumerMember,
    target: tuple[int, Mapping[bytes, frozenset[int]]],
    owned: Sequence[Any] | None,
    *,
    has_changed: bool,
) -> StepInputs:
    """Return the inputs of a member's next step; `owned` are the partitions that it reports."""
    names, topics = group.subscriptions.topics_of(member), shard.image.topics_by_id
    epoch, partitions = target
    owners = group.partition_epochs
    ids = _SubscribedIds(topics, names)
    aim = MemberTarget(epoch, partitions, ids, has_changed, owned, owners.of_topic)
    return StepInputs(member, aim, names, topics, owners, owners.version)


def is_large(shard: ServingShard, body: Any) -> bool:
    """Return whether the next step of the member of a request should be prepared."""
    group = shard.groups.get(body.group_id)
    if not isinstance(group, ConsumerGroup) or body.member_epoch < 0:
        return False
    member = _present_member(group, body)
    if member is None or max(len(group.target_of(member)), len(member.assigned)) <= _FEW:
        return False
    return body.subscribed_topic_names is not None or not member.is_reconciled_to(
        group.assignment_epoch
    )


def _present_member(group: ConsumerGroup, body: Any) -> ConsumerMember | None:
    """Return the member before its request; None if it is unknown."""
    existing = _returning(group, body)
    if existing is not None:
        return joining.successor(existing, body.member_id)
    return group.members.get(body.member_id)


def _returning(group: ConsumerGroup, body: Any) -> ConsumerMember | None:
    """Return the static member that the member of a request replaces."""
    existing = group.static_member(body.instance_id) if body.member_epoch == JOIN_EPOCH else None
    is_away = existing is not None and existing.epoch == LEAVE_STATIC_EPOCH
    return existing if is_away and body.member_id else None


def prepare(shard: ServingShard, request: ConsumerHeartbeat) -> Steps[PreparedStep | None]:
    """Return the next step of a request's member.

    Return None if the operation has to compute it, because the member or its target changes again
    and again.
    """
    for _ in range(_MOST_ATTEMPTS):
        inputs = _present_inputs(shard, request)
        if inputs is None:
            return None
        topic_ids = inputs.owners.note_new_owners()
        try:
            prepared = yield from _computed(shard, request.body, inputs)
        finally:
            inputs.owners.forget(topic_ids)
        present = _present_inputs(shard, request)
        if present is None or not present.are_of_same_step(inputs):
            continue
        if not prepared.adds_any_of(topic_ids):
            return prepared._replace(inputs=present)
    return None


def _present_inputs(shard: ServingShard, request: ConsumerHeartbeat) -> StepInputs | None:
    """Return what the operation would use now, without a new target assignment.

    Return None if there is no such member, or if it has to rejoin.
    """
    body = request.body
    group = shard.groups.get(body.group_id)
    before = _present_member(group, body) if isinstance(group, ConsumerGroup) else None
    if before is None or before.state is MemberState.UNKNOWN:
        return None
    assert isinstance(group, ConsumerGroup)
    member = joining.updated(before, request)
    has_changed = (
        member.topic_names != before.topic_names or member.topic_regex != before.topic_regex
    )
    target = group.assignment_epoch, group.target_of(before)
    return inputs_of(shard, group, member, target, body.topic_partitions, has_changed=has_changed)


def _computed(shard: ServingShard, body: Any, inputs: StepInputs) -> Steps[PreparedStep]:
    group_id, returned = body.group_id, None
    group = shard.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    existing = _returning(group, body)
    if existing is not None:
        returned = yield from joining.return_in_steps(group, existing, body.member_id)
    member = yield from reconcile_in_steps(inputs.member, inputs.aim)
    record = None
    if member != inputs.member:
        record = yield from current_record_in_steps(group_id, member)
    assignment = yield from assigned_in_steps(member.assigned)
    return PreparedStep(inputs, member, record, assignment, returned)


class PreparedAway(NamedTuple):
    """A static member that leaves for a while.

    Attributes:
        existing: The member before it leaves.
        record: The record of the member after it left.
    """

    existing: ConsumerMember
    record: CoordinatorRecord


def leaves_much(shard: ServingShard, body: Any) -> ConsumerMember | None:
    """Return the static member with many topics whose request says that it leaves for a while."""
    group = shard.groups.get(body.group_id)
    if not isinstance(group, ConsumerGroup) or body.member_epoch != LEAVE_STATIC_EPOCH:
        return None
    member = group.static_member(body.instance_id)
    return member if member is not None and len(member.assigned) > _FEW else None


def prepare_away(group_id: str, existing: ConsumerMember) -> Steps[PreparedAway]:
    """Encode the record of a static member that leaves for a while."""
    record = yield from current_record_in_steps(group_id, existing.as_away())
    return PreparedAway(existing, record)
