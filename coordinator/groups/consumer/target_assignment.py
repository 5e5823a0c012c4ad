"""The target assignment of a consumer group: when a new one is due, and its computation.

For a small group, the heartbeat that needs the assignment computes it. For a large group, that
would block the event loop, so it is computed in slices (`AssignmentJob`). Members get it with a
later heartbeat, as they do while `group.consumer.assignment.interval.ms` has not passed.

Source: Kafka's GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder; KIP-1263
for the interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import collected, in_one_go
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
from wirebroker.coordinator.groups.assignors.assignors import ASSIGNORS
from wirebroker.coordinator.groups.assignors.in_steps import sorted_in_steps
from wirebroker.coordinator.groups.consumer.consumer_group import NO_TARGET
from wirebroker.coordinator.groups.consumer.consumer_records import (
    target_epoch_record,
    target_record_in_steps,
)
from wirebroker.coordinator.groups.consumer.subscriptions import topics_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment
    from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex

# Maximum members plus partitions for which an assignment is computed in one go; takes a few
# milliseconds.
MOST_AT_ONCE: Final = 3_000
# Members plus partitions whose computation other groups need not wait for: 0.1 s.
MOST_BRIEF: Final = 10_000
_MEMBERS_PER_STEP: Final = 64


class AssignInBackground(NamedTuple):
    """Effect: compute a large group's target assignment, then install it."""

    group_id: str


class AssignmentJob(NamedTuple):
    """A computation: the members and topics of one moment.

    Attributes:
        epoch: The group epoch.
        members: The members by id.
        targets: The targets that they have or take over.
        resolved: The topics of their regular expressions.
        topics: The cluster's topics by name.
        assignor: Name of the assignor.
    """

    group_id: str
    epoch: int
    members: Mapping[str, ConsumerMember]
    targets: Mapping[str, Mapping[bytes, frozenset[int]]]
    resolved: Mapping[str, ResolvedRegex]
    topics: Mapping[str, TopicImage]
    assignor: str

    @property
    def is_small(self) -> bool:
        """Whether it may be computed at once."""
        return self._is_below(MOST_AT_ONCE)

    @property
    def is_brief(self) -> bool:
        """Whether the assignments of other groups may wait for it."""
        return self._is_below(MOST_BRIEF)

    def _is_below(self, limit: int) -> bool:
        work = len(self.members)
        if work > limit:
            return False
        # Each subscription is looked up name by name.
        subscriptions = {topics_of(member, self.resolved) for member in self.members.values()}
        work += sum(map(len, subscriptions))
        if work > limit:
            return False
        for name in frozenset[str]().union(*subscriptions):
            topic = self.topics.get(name)
            work += 1 if topic is None else len(topic.partitions)
            if work > limit:
                return False
        return True


def job_of(
    group: ConsumerGroup,
    epoch: int,
    topics: Mapping[str, TopicImage],
    default_assignor: str,
    updated: ConsumerMember | None = None,
) -> AssignmentJob:
    """Return the computation for a group, in which one member is new or has changed.

    It only copies what may change; `run_job` does the rest in steps.
    """
    members, targets = dict(group.members), dict(group.target)
    old: ConsumerMember | None = None
    if updated is not None:
        replaced = group.static_member(updated.instance_id)
        old = members.get(updated.member_id) if replaced is None else replaced
        if replaced is not None:
            members.pop(replaced.member_id)
            targets[updated.member_id] = group.target_of(updated)
        members[updated.member_id] = updated
    # A Java coordinator may have had others.
    preferred = group.preferred_assignor(default_assignor, old, updated)
    return AssignmentJob(
        group.group_id,
        epoch,
        members,
        targets,
        dict(group.subscriptions.resolved),
        topics,
        preferred if preferred in ASSIGNORS else default_assignor,
    )


def run_job(job: AssignmentJob) -> Steps[GroupAssignment]:
    """Compute a target assignment.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: the assignor has failed.
    """
    # Members with equal subscriptions share one object, as assignors prefer.
    topic_ids: dict[frozenset[str], frozenset[bytes]] = {}
    counts: dict[bytes, int] = {}
    inputs: list[SubscribedMember] = []
    for member_id in (yield from sorted_in_steps(job.members, str)):
        member = job.members[member_id]
        names = topics_of(member, job.resolved)
        ids = topic_ids.get(names)
        if ids is None:
            # Also of names without a topic, each of which takes as long.
            known = yield from collected(map(job.topics.get, names))
            found = [topic for topic in known if topic is not None]
            ids = topic_ids[names] = frozenset(topic.topic_id for topic in found)
            counts.update((topic.topic_id, len(topic.partitions)) for topic in found)
            yield
        target = job.targets.get(member_id, NO_TARGET)
        inputs.append(SubscribedMember(member_id, member.instance_id, ids, target))
        if len(inputs) % _MEMBERS_PER_STEP == 0:
            yield
    return (yield from ASSIGNORS[job.assignor](inputs, counts))


def assign_at_once(job: AssignmentJob) -> GroupAssignment:
    """Compute a small group's target assignment; raise as run_job does."""
    return in_one_go(run_job(job))


def target_records(
    job: AssignmentJob, assignment: GroupAssignment, timestamp_ms: int
) -> list[CoordinatorRecord]:
    """Return the records of a new target assignment; members whose target is the same have none."""
    records = [record for record in changed_targets(job, assignment) if record is not None]
    records.append(target_epoch_record(job.group_id, job.epoch, timestamp_ms))
    return records


def changed_targets(
    job: AssignmentJob, assignment: GroupAssignment
) -> Iterator[CoordinatorRecord | None]:
    """Yield the records of the members whose target has changed, or who had none.

    A record of many topics takes steps, after each of which it yields None.
    """
    for member_id, new in assignment.items():
        target = job.targets.get(member_id, NO_TARGET)
        if new != target or target is NO_TARGET:
            yield (yield from target_record_in_steps(job.group_id, member_id, new))


def is_due(assignment_ms: int, interval_ms: int, wall_ms: int) -> bool:
    """Return whether enough time has passed since the last computation."""
    return not assignment_ms or not interval_ms or wall_ms >= assignment_ms + interval_ms
