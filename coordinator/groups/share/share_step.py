"""The step of a member to its target assignment, computed in slices before its heartbeat runs.

An operation cannot pause, so it must not sort and encode 100,000 partitions. The step does not
depend on other members, because several members may have the same partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP
from wirebroker.coordinator.groups.described_topics import assigned_in_steps
from wirebroker.coordinator.groups.share import share_joining
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_member import NO_ASSIGNMENT
from wirebroker.coordinator.groups.share.share_records import current_record_in_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_request import ShareHeartbeat

# Up to this number of topics and partitions the operation itself computes the step: 1 ms.
_FEW: Final = 1_000
# Attempts to prepare a step before the operation computes it.
_MOST_ATTEMPTS: Final = 3


class ShareStep(NamedTuple):
    """A step.

    Attributes:
        before: The member before the step.
        epoch: The assignment epoch.
        partitions: The member's target assignment.
        member: The member after the step.
        record: The record of the member after the step.
        assignment: The assignment in the response.
    """

    before: ShareGroupMember
    epoch: int
    partitions: Mapping[bytes, frozenset[int]]
    member: ShareGroupMember
    record: CoordinatorRecord
    assignment: Mapping[str, Any]

    def is_from(
        self, before: ShareGroupMember, epoch: int, partitions: Mapping[bytes, frozenset[int]]
    ) -> bool:
        """Return whether this is the step from a member to a target.

        The topics may be older: the step then equals that of a heartbeat before they changed.
        """
        return self.epoch == epoch and self.partitions is partitions and self.before == before


def is_large(shard: ServingShard, body: Any) -> bool:
    """Return whether the step of the member of a request should be prepared."""
    group = shard.groups.get(body.group_id)
    if not isinstance(group, ShareGroup) or body.member_epoch < 0:
        return False
    member = group.members.get(body.member_id)
    if member is None:
        return False
    if member.epoch == group.assignment_epoch and body.subscribed_topic_names is None:
        return False
    return _size_of(group.target.get(body.member_id, NO_ASSIGNMENT)) > _FEW


def _size_of(partitions: Mapping[bytes, frozenset[int]]) -> int:
    return len(partitions) + sum(map(len, partitions.values()))


def prepare(shard: ServingShard, request: ShareHeartbeat) -> Steps[ShareStep | None]:
    """Return the step of a request's member; None if the operation has to compute it."""
    for _ in range(_MOST_ATTEMPTS):
        inputs = _present_inputs(shard, request)
        if inputs is None:
            return None
        before, epoch, partitions = inputs
        member = yield from reconciled_in_steps(before, epoch, partitions, shard.image)
        record = yield from current_record_in_steps(request.body.group_id, member)
        assignment = yield from assigned_in_steps(member.assigned)
        step = ShareStep(before, epoch, partitions, member, record, assignment)
        present = _present_inputs(shard, request)
        if present is not None and step.is_from(*present):
            return step
    return None


def _present_inputs(
    shard: ServingShard, request: ShareHeartbeat
) -> tuple[ShareGroupMember, int, Mapping[bytes, frozenset[int]]] | None:
    """Return what the operation would use now, without a new target assignment."""
    member_id = request.body.member_id
    group = shard.groups.get(request.body.group_id)
    before = group.members.get(member_id) if isinstance(group, ShareGroup) else None
    if before is None:
        return None
    assert isinstance(group, ShareGroup)
    target = group.target.get(member_id, NO_ASSIGNMENT)
    return share_joining.updated(before, request), group.assignment_epoch, target


def reconciled(
    member: ShareGroupMember,
    epoch: int,
    partitions: Mapping[bytes, frozenset[int]],
    image: ClusterImage,
) -> ShareGroupMember:
    """Return the member with its target assignment; see `reconciled_in_steps`."""
    return in_one_go(reconciled_in_steps(member, epoch, partitions, image))


def reconciled_in_steps(
    member: ShareGroupMember,
    epoch: int,
    partitions: Mapping[bytes, frozenset[int]],
    image: ClusterImage,
) -> Steps[ShareGroupMember]:
    """Return the member with its target assignment; the same object if nothing changes.

    It gets the partitions of topics that exist and that it subscribes to.
    """
    topics, names = image.topics_by_id, member.topic_names
    assigned: dict[bytes, frozenset[int]] = {}
    for count, (topic_id, indexes) in enumerate(partitions.items(), 1):
        if topic_id in topics and topics[topic_id].name in names:
            assigned[topic_id] = indexes
        if count % WORK_PER_STEP == 0:
            yield
    if epoch != member.epoch:
        return member.with_epoch(epoch, assigned=assigned)
    return member if assigned == member.assigned else member.with_partitions(assigned)
