"""The steps of a request of a member: its subscription, its target, its partitions.

Source: Kafka's GroupMetadataManager.consumerGroupHeartbeat, classicGroupJoinToConsumerGroup.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer import regexes
from wirebroker.coordinator.groups.consumer.consumer_fencing import watch
from wirebroker.coordinator.groups.consumer.consumer_group import NO_TARGET
from wirebroker.coordinator.groups.consumer.consumer_member import MemberState
from wirebroker.coordinator.groups.consumer.consumer_records import (
    current_record,
    epoch_record,
    partition_metadata_tombstone,
    subscription_record,
    target_epoch_record,
)
from wirebroker.coordinator.groups.consumer.consumer_timers import (
    ConsumerRevocation,
    cancel_member_timers,
)
from wirebroker.coordinator.groups.consumer.prepared_step import inputs_of
from wirebroker.coordinator.groups.consumer.reconciliation import reconcile
from wirebroker.coordinator.groups.consumer.regexes import RegexChange, ResolveRegexes
from wirebroker.coordinator.groups.consumer.target_assignment import (
    MOST_AT_ONCE,
    AssignInBackground,
    assign_at_once,
    is_due,
    job_of,
    target_records,
)
from wirebroker.coordinator.groups.group_configs import consumer_assignment_interval_ms
from wirebroker.coordinator.groups.member_timers import cancel_revocation, expect_revocation
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.consumer.heartbeat_request import RequestedNames
    from wirebroker.coordinator.groups.consumer.prepared_step import PreparedStep
    from wirebroker.coordinator.groups.consumer.target_assignment import AssignmentJob
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment

logger = logging.getLogger(__name__)

# A change of the metadata looks at all topics of a group: 20 ms.
MOST_GROUP_TOPICS: Final = 50_000
_NEVER_ASSIGNED_MS: Final = 0

# The epoch of a target assignment, and a member's part of it.
TargetOfMember: TypeAlias = "tuple[int, Mapping[bytes, frozenset[int]]]"


class MemberUpdate:
    """A member that joins or stays, in one request.

    Attributes:
        outcome: The records so far.
        member: The member as these records make it.
        group_epoch: The group's epoch as these records make it.
        context: The client's access rights, for the topics of its regular expression.
        requested: The topics that the request lists by name, if they are prepared.
        prepared: The member's next step, if it was computed before.
    """

    __slots__ = (
        "_metadata_hash",
        "context",
        "group",
        "group_epoch",
        "member",
        "now",
        "outcome",
        "prepared",
        "requested",
        "shard",
    )

    def __init__(
        self,
        shard: ServingShard,
        group: ConsumerGroup,
        member: ConsumerMember,
        outcome: Outcome,
        *,
        now: Moment,
        context: Any = None,
        requested: RequestedNames | None = None,
        prepared: PreparedStep | None = None,
    ) -> None:
        self.shard = shard
        self.group = group
        self.member = member
        self.outcome = outcome
        self.now = now
        self.context = context
        self.requested = requested
        self.prepared = prepared
        self.group_epoch = group.epoch
        self._metadata_hash = group.metadata_hash

    def __enter__(self) -> None:
        """Begin the steps; if one fails, their soft state is reset."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.forget()

    def undo(self, error: ErrorCode, now: Moment) -> Outcome:
        """Restore the group's soft state and the member's timers, since the records are lost."""
        del error
        self.forget()
        shard, group_id, member_id = self.shard, self.group.group_id, self.member.member_id
        cancel_member_timers(shard.timers, group_id, member_id)
        member = self.group.members.get(member_id)
        if member is not None:
            watch(shard, self.group, member, now)
        return Outcome()

    def forget(self) -> None:
        """Reset the soft state, so that the next request checks the topics again."""
        group = self.group
        group.checked_topics = None
        for effect in self.outcome.effects:
            if isinstance(effect, ResolveRegexes):
                group.is_resolving = False
            elif isinstance(effect, AssignInBackground):
                group.background_work = None

    # -- 1. the subscription -----------------------------------------------------------------

    def subscribe(self, updated: ConsumerMember) -> bool:
        """Add the records of a changed member; return whether its subscription has changed."""
        group, shard, before = self.group, self.shard, self.member
        names_changed = False
        if updated != before:
            record = subscription_record(group.group_id, updated, self.requested)
            self.outcome.records.append(record)
            names_changed = updated.topic_names != before.topic_names
        regex_change = regexes.change_of(group, before, updated, self.outcome)
        self._search_topics(before, updated)
        assignor_changed = False
        if updated.server_assignor != before.server_assignor:
            default = shard.settings.consumer_assignors[0]
            preferred = group.preferred_assignor(default, before, updated)
            assignor_changed = preferred != group.preferred_assignor(default)
        self.member = updated
        is_resolved = regex_change is RegexChange.RESOLVED
        is_raised = names_changed or is_resolved or assignor_changed
        if is_raised or group.checked_topics is not shard.image.topics:
            self._check_topics(before, updated, is_raised=is_raised)
        return names_changed or regex_change is not RegexChange.NONE

    def _search_topics(self, before: ConsumerMember, updated: ConsumerMember) -> None:
        """Start a search for the topics of the group's regular expressions, if one is due."""
        wanted = regexes.due_search(self.shard, self.group, before, updated, self.now.wall_ms)
        if wanted:
            self.group.is_resolving = True
            effect = ResolveRegexes(self.group.group_id, wanted, self.context)
            self.outcome.effects.append(effect)

    def _check_topics(
        self, before: ConsumerMember, updated: ConsumerMember, *, is_raised: bool
    ) -> None:
        """Raise the group's epoch if its subscriptions or their topics have changed.

        Raises:
            KafkaError: INVALID_REQUEST: the group has too many topics.
        """
        group, shard = self.group, self.shard
        # `before` has no subscription for a new member, the predecessor's for a returning one.
        topics = group.subscriptions.topics(without=(before,), including=(updated,))
        if len(topics) > MOST_GROUP_TOPICS and updated.topic_names - before.topic_names:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The members of a group can subscribe to at most {MOST_GROUP_TOPICS} topics.",
            )
        added = () if self.requested is None else self.requested.ordered
        self._metadata_hash = group.subscriptions.hash_of(topics, shard.topic_hashes, added)
        # A classic group has epoch 0 until the end of its first rebalance; no member may.
        if is_raised or not group.epoch or self._metadata_hash != group.metadata_hash:
            self.group_epoch = group.epoch + 1
            record = epoch_record(group.group_id, self.group_epoch, self._metadata_hash)
            self.outcome.records.append(record)
            logger.info(
                "group %s is in epoch %d",
                group.group_id,
                self.group_epoch,
                extra=about_group(group.group_id),
            )
        group.checked_topics = shard.image.topics
        if group.has_partition_metadata:
            self.outcome.records.append(partition_metadata_tombstone(group.group_id))

    # -- 2. the target assignment ------------------------------------------------------------

    def assign(self, before: ConsumerMember) -> TargetOfMember:
        """Return the epoch and the member's part of the target assignment, a new one if due."""
        group, shard = self.group, self.shard
        last = group.assignment_epoch, group.target_of(before)
        if group.assignment_epoch >= self.group_epoch:
            return last
        interval_ms = consumer_assignment_interval_ms(shard.settings, shard.image, group.group_id)
        if not is_due(group.assignment_ms, interval_ms, self.now.wall_ms):
            return last
        if group.background_work is not None or group.refused_epoch == self.group_epoch:
            return last
        job = self._small_job()
        if job is None:
            if not group.assignment_epoch:
                last = self._assign_nothing()
            effect = group.background_work = AssignInBackground(group.group_id)
            self.outcome.effects.append(effect)
            return last
        assignment = assign_at_once(job)
        self.outcome.records += target_records(job, assignment, self.now.wall_ms)
        return self.group_epoch, assignment[self.member.member_id]

    def _assign_nothing(self) -> TargetOfMember:
        """Record an assignment without partitions, since no member may be in epoch 0.

        A classic group has epoch 0 until the end of its first rebalance.
        """
        group_id, first_epoch = self.group.group_id, self.group_epoch
        self.group_epoch += 1
        self.outcome.records += [
            epoch_record(group_id, self.group_epoch, self._metadata_hash),
            target_epoch_record(group_id, first_epoch, _NEVER_ASSIGNED_MS),
        ]
        return first_epoch, NO_TARGET

    def _small_job(self) -> AssignmentJob | None:
        """Return the computation if it may be done at once."""
        group, shard = self.group, self.shard
        if len(group.members) > MOST_AT_ONCE:
            return None
        default = shard.settings.consumer_assignors[0]
        job = job_of(group, self.group_epoch, shard.image.topics, default, self.member)
        return job if job.is_small else None

    # -- 3. the member's partitions ----------------------------------------------------------

    def take_next_step(
        self, target: TargetOfMember, owned: Sequence[Any] | None, *, has_changed: bool
    ) -> None:
        """Move the member one step toward its target; `owned` are the partitions it reports."""
        member, group = self.member, self.group
        if not has_changed and member.is_reconciled_to(target[0]):
            return
        inputs = inputs_of(self.shard, group, member, target, owned, has_changed=has_changed)
        prepared = self.prepared
        if prepared is not None and prepared.inputs.are(inputs):
            self.member, record = prepared.member, prepared.record
        else:
            self.member, record = reconcile(member, inputs.aim), None
        if self.member == member:
            return
        self.outcome.records.append(record or current_record(group.group_id, self.member))
        if self.member.classic is not None:
            return
        timers = self.shard.timers
        event = ConsumerRevocation(group.group_id, member.member_id, self.member.epoch)
        if self.member.state is MemberState.UNREVOKED_PARTITIONS:
            expect_revocation(timers, event, self.member.rebalance_timeout_ms, self.now)
        else:
            cancel_revocation(timers, group.group_id, member.member_id)
