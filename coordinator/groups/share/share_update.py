"""The steps of a heartbeat: the member's subscription, the target assignment, its partitions.

Source: Kafka's GroupMetadataManager.shareGroupHeartbeat, ShareGroupAssignmentBuilder.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer.target_assignment import is_due
from wirebroker.coordinator.groups.group_configs import share_assignment_interval_ms
from wirebroker.coordinator.groups.member_timers import cancel_session
from wirebroker.coordinator.groups.share import share_initialization
from wirebroker.coordinator.groups.share.share_assignment import (
    AssignShareGroup,
    assign_at_once,
    job_of,
    target_records,
)
from wirebroker.coordinator.groups.share.share_fencing import watch
from wirebroker.coordinator.groups.share.share_member import NO_ASSIGNMENT
from wirebroker.coordinator.groups.share.share_records import (
    current_record,
    epoch_record,
    subscription_record,
)
from wirebroker.coordinator.groups.share.share_request import MOST_TOPICS
from wirebroker.coordinator.groups.share.share_step import reconciled
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_group import ShareGroup
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_step import ShareStep
    from wirebroker.coordinator.outcome import Moment

logger = logging.getLogger(__name__)

# Of all members together.
MOST_GROUP_TOPICS: Final = MOST_TOPICS

# The epoch of a target assignment, and a member's part of it.
TargetOfMember: TypeAlias = "tuple[int, Mapping[bytes, frozenset[int]]]"


class ShareUpdate:
    """A member that joins or stays, in one request.

    Attributes:
        outcome: The records so far.
        member: The member as these records make it.
        group_epoch: The group's epoch as these records make it.
        prepared: The member's step to its target, if it was computed before.
    """

    __slots__ = ("_names", "group", "group_epoch", "member", "now", "outcome", "prepared", "shard")

    def __init__(
        self,
        shard: ServingShard,
        group: ShareGroup,
        member: ShareGroupMember,
        *,
        now: Moment,
        prepared: ShareStep | None = None,
    ) -> None:
        self.shard = shard
        self.group = group
        self.member = member
        self.now = now
        self.prepared = prepared
        self.outcome = Outcome()
        self.group_epoch = group.epoch
        # The subscribed topics, as these records make them.
        self._names = group.topic_names

    def undo(self, error: ErrorCode, now: Moment) -> Outcome:
        """Restore the group's soft state and the member's session, since the records are lost."""
        del error
        group, member_id = self.group, self.member.member_id
        group.checked_topics = None
        for effect in self.outcome.effects:
            if isinstance(effect, AssignShareGroup):
                group.background_work = None
        cancel_session(self.shard.timers, group.group_id, member_id)
        if member_id in group.members:
            watch(self.shard, group, member_id, now)
        return Outcome()

    def subscribe(self, updated: ShareGroupMember) -> bool:
        """Add the records of a changed member; return whether the group's epoch has risen.

        Raises:
            KafkaError: INVALID_REQUEST: the group has too many topics.
        """
        group, before, image = self.group, self.member, self.shard.image
        if updated != before:
            self.outcome.records.append(subscription_record(group.group_id, updated))
        is_raised = updated.topic_names != before.topic_names
        if group.assignment_epoch >= group.epoch:
            is_raised = is_raised or (not group.is_empty and group.has_unassigned)
        self.member = updated
        if not is_raised and group.checked_topics is image.topics:
            return False
        known = group.members.get(updated.member_id)
        self._names = group.names_after(known, updated)
        if len(self._names) > MOST_GROUP_TOPICS and updated.topic_names - before.topic_names:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The members of a group can subscribe to at most {MOST_GROUP_TOPICS} topics.",
            )
        hashed = self.shard.topic_hashes.of_group(set(self._names))
        is_raised = is_raised or hashed != group.metadata_hash
        if is_raised:
            self.group_epoch = group.epoch + 1
            record = epoch_record(group.group_id, self.group_epoch, hashed)
            self.outcome.records.append(record)
            logger.info(
                "share group %s is in epoch %d",
                group.group_id,
                self.group_epoch,
                extra=about_group(group.group_id),
            )
        group.checked_topics = image.topics
        return is_raised

    def assign(self) -> TargetOfMember:
        """Return the epoch and the member's part of the target assignment, a new one if due."""
        group, shard, member = self.group, self.shard, self.member
        last = group.assignment_epoch, group.target.get(member.member_id, NO_ASSIGNMENT)
        if group.assignment_epoch >= self.group_epoch or group.background_work is not None:
            return last
        if group.refused_epoch == self.group_epoch:
            return last
        interval_ms = share_assignment_interval_ms(shard.settings, shard.image, group.group_id)
        if not is_due(group.assignment_ms, interval_ms, self.now.wall_ms):
            return last
        job = job_of(group, self.group_epoch, shard.image.topics, member)
        if not job.is_small:
            effect = group.background_work = AssignShareGroup(group.group_id)
            self.outcome.effects.append(effect)
            return last
        assignment = assign_at_once(job)
        self.outcome.records += target_records(job, assignment, self.now.wall_ms)
        return self.group_epoch, assignment[member.member_id]

    def reconcile(self, target: TargetOfMember, *, has_changed: bool) -> None:
        """Give the member its target assignment; `has_changed`: also in the same epoch."""
        before, (epoch, partitions), prepared = self.member, target, self.prepared
        if epoch == before.epoch and not has_changed:
            return
        if prepared is not None and prepared.is_from(before, epoch, partitions):
            is_same = prepared.member is prepared.before
            self.member = before if is_same else prepared.member
            record: CoordinatorRecord | None = prepared.record
        else:
            self.member, record = reconciled(before, epoch, partitions, self.shard.image), None
        if self.member is not before:
            record = record or current_record(self.group.group_id, self.member)
            self.outcome.records.append(record)

    def initialize(self) -> None:
        """Begin to create the share state of newly subscribed partitions."""
        begun = share_initialization.begin(
            self.shard, self.group, self._names, self.group_epoch, self.now
        )
        self.outcome.records += begun.records
        self.outcome.effects += begun.effects
