"""The target assignment of a share group, and its computation.

For a small group, the heartbeat that needs the assignment computes it. For a large group, that
would block the event loop, so it is computed in slices (`ShareAssignmentJob`). Members get it with
a later heartbeat, as they do while `group.share.assignment.interval.ms` has not passed.

Source: Kafka's GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import collected, in_one_go
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
from wirebroker.coordinator.groups.assignors.in_steps import sorted_in_steps
from wirebroker.coordinator.groups.assignors.simple import assign_shared
from wirebroker.coordinator.groups.consumer.target_assignment import MOST_AT_ONCE, MOST_BRIEF
from wirebroker.coordinator.groups.share.share_member import NO_ASSIGNMENT
from wirebroker.coordinator.groups.share.share_records import (
    target_epoch_record,
    target_record_in_steps,
)
from wirebroker.coordinator.groups.share.share_topics import NO_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment
    from wirebroker.coordinator.groups.share.share_group import ShareGroup
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_topics import TopicPartitions

_MEMBERS_PER_STEP: Final = 64


class AssignShareGroup(NamedTuple):
    """Effect: compute a large group's target assignment, then install it."""

    group_id: str


class ShareAssignmentJob(NamedTuple):
    """A computation: the members and topics of one moment.

    Attributes:
        epoch: The group epoch.
        members: The members by id.
        targets: Their present targets.
        topics: The cluster's topics by name.
        initialized: The partitions that may be assigned.
    """

    group_id: str
    epoch: int
    members: Mapping[str, ShareGroupMember]
    targets: Mapping[str, Mapping[bytes, frozenset[int]]]
    topics: Mapping[str, TopicImage]
    initialized: TopicPartitions

    @property
    def is_small(self) -> bool:
        """Whether it may be computed at once."""
        return self._is_below(MOST_AT_ONCE)

    @property
    def is_brief(self) -> bool:
        """Whether the assignments of other groups may wait for it."""
        return self._is_below(MOST_BRIEF)

    def _is_below(self, limit: int) -> bool:
        count = len(self.members)
        if count > limit:
            return False
        subscriptions = {member.topic_names for member in self.members.values()}
        partitions = sum(len(topic.partitions) for topic in self.initialized.values())
        return count + sum(map(len, subscriptions)) + max(partitions, count) <= limit


def job_of(
    group: ShareGroup,
    epoch: int,
    topics: Mapping[str, TopicImage],
    updated: ShareGroupMember | None = None,
) -> ShareAssignmentJob:
    """Return the computation for a group, in which one member is new or has changed.

    It only copies what may change; `run_job` does the rest in steps.
    """
    members = dict(group.members)
    if updated is not None:
        members[updated.member_id] = updated
    return ShareAssignmentJob(
        group.group_id,
        epoch,
        members,
        dict(group.target),
        topics,
        NO_TOPICS if group.topics is None else group.topics.initialized,
    )


def run_job(job: ShareAssignmentJob) -> Steps[GroupAssignment]:
    """Compute a target assignment."""
    member_ids = yield from sorted_in_steps(job.members, str)
    if not job.initialized:
        return {member_id: {} for member_id in member_ids}
    # Members with equal subscriptions share one object, as assignors prefer.
    topic_ids: dict[frozenset[str], frozenset[bytes]] = {}
    inputs: list[SubscribedMember] = []
    for member_id in member_ids:
        names = job.members[member_id].topic_names
        ids = topic_ids.get(names)
        if ids is None:
            # Also of names without a topic, each of which takes as long.
            known = yield from collected(map(job.topics.get, names))
            found = [topic for topic in known if topic is not None]
            ids = topic_ids[names] = frozenset(topic.topic_id for topic in found)
            yield
        target = job.targets.get(member_id, NO_ASSIGNMENT)
        inputs.append(SubscribedMember(member_id, None, ids, target))
        if len(inputs) % _MEMBERS_PER_STEP == 0:
            yield
    assignable = {topic_id: topic.partitions for topic_id, topic in job.initialized.items()}
    return (yield from assign_shared(inputs, assignable))


def assign_at_once(job: ShareAssignmentJob) -> GroupAssignment:
    """Compute a small group's target assignment."""
    return in_one_go(run_job(job))


def target_records(
    job: ShareAssignmentJob, assignment: GroupAssignment, timestamp_ms: int
) -> list[CoordinatorRecord]:
    """Return the records of a new target assignment; members whose target is the same have none."""
    records = [record for record in changed_targets(job, assignment) if record is not None]
    records.append(target_epoch_record(job.group_id, job.epoch, timestamp_ms))
    return records


def changed_targets(
    job: ShareAssignmentJob, assignment: GroupAssignment
) -> Iterator[CoordinatorRecord | None]:
    """Yield the records of the members whose target has changed, or who had none.

    A record of many topics takes steps, after each of which it yields None.
    """
    for member_id, new in assignment.items():
        target = job.targets.get(member_id, NO_ASSIGNMENT)
        if new != target or target is NO_ASSIGNMENT:
            yield (yield from target_record_in_steps(job.group_id, member_id, new))
