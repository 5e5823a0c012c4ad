"""The target assignment of a share group, and its computation.

For a small group, the heartbeat that needs the assignment computes it. For a large group, that
would block the event loop, so it is computed in slices (`ShareAssignmentJob`). Members get it with
a later heartbeat, as they do while `group.share.assignment.interval.ms` has not passed.

Source: Kafka's GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
from wirebroker.coordinator.groups.assignors.simple import assign_shared
from wirebroker.coordinator.groups.consumer.target_assignment import MOST_AT_ONCE
from wirebroker.coordinator.groups.share.share_member import NO_ASSIGNMENT
from wirebroker.coordinator.groups.share.share_records import target_epoch_record, target_record
from wirebroker.coordinator.groups.share.share_topics import NO_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment
    from wirebroker.coordinator.groups.share.share_group import ShareGroup
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_topics import TopicPartitions


class AssignShareGroup(NamedTuple):
    """Effect: compute a large group's target assignment, then install it."""

    group_id: str


class ShareAssignmentJob(NamedTuple):
    """A computation: the members and topics of one moment.

    Attributes:
        epoch: The group epoch.
        members: The members with their present targets.
        topics: The cluster's topics by name.
        initialized: The partitions that may be assigned.
    """

    group_id: str
    epoch: int
    members: Sequence[tuple[ShareGroupMember, Mapping[bytes, frozenset[int]]]]
    topics: Mapping[str, TopicImage]
    initialized: TopicPartitions

    @property
    def is_small(self) -> bool:
        """Whether it may be computed at once."""
        subscriptions = {member.topic_names for member, _ in self.members}
        work = len(self.members) + sum(map(len, subscriptions))
        partitions = sum(len(topic.partitions) for topic in self.initialized.values())
        return work + max(partitions, len(self.members)) <= MOST_AT_ONCE


def job_of(
    group: ShareGroup,
    epoch: int,
    topics: Mapping[str, TopicImage],
    updated: ShareGroupMember | None = None,
) -> ShareAssignmentJob:
    """Return the computation for a group, in which one member is new or has changed."""
    members = dict(group.members)
    if updated is not None:
        members[updated.member_id] = updated
    return ShareAssignmentJob(
        group.group_id,
        epoch,
        [
            (member, group.target.get(member_id, NO_ASSIGNMENT))
            for member_id, member in sorted(members.items())
        ],
        topics,
        NO_TOPICS if group.topics is None else group.topics.initialized,
    )


def run_job(job: ShareAssignmentJob) -> Steps[GroupAssignment]:
    """Compute a target assignment."""
    # Members with equal subscriptions share one object, as assignors prefer.
    topic_ids: dict[frozenset[str], frozenset[bytes]] = {}
    inputs: list[SubscribedMember] = []
    for member, target in job.members:
        names = member.topic_names
        ids = topic_ids.get(names)
        if ids is None:
            ids = topic_ids[names] = frozenset(
                job.topics[name].topic_id for name in names if name in job.topics
            )
            yield
        inputs.append(SubscribedMember(member.member_id, None, ids, target))
    assignable = {topic_id: topic.partitions for topic_id, topic in job.initialized.items()}
    return (yield from assign_shared(inputs, assignable))


def assign_at_once(job: ShareAssignmentJob) -> GroupAssignment:
    """Compute a small group's target assignment."""
    return in_one_go(run_job(job))


def target_records(
    job: ShareAssignmentJob, assignment: GroupAssignment, timestamp_ms: int
) -> list[CoordinatorRecord]:
    """Return the records of a new target assignment; members whose target is the same have none."""
    records = list(changed_targets(job, assignment))
    records.append(target_epoch_record(job.group_id, job.epoch, timestamp_ms))
    return records


def changed_targets(
    job: ShareAssignmentJob, assignment: GroupAssignment
) -> Iterable[CoordinatorRecord]:
    """Yield the records of the members whose target has changed, or who had none."""
    for member, target in job.members:
        new = assignment[member.member_id]
        if new != target or target is NO_ASSIGNMENT:
            yield target_record(job.group_id, member.member_id, new)
