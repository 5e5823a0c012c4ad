"""The steps of a request of a member: what it joins with, topics, and tasks.

The step between the topics and the tasks, the target assignment, is in due_assignment.py.

Source: Kafka's GroupMetadataManager.streamsGroupHeartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups import member_timers, streams_configs
from wirebroker.coordinator.groups.streams import streams_timers as timing
from wirebroker.coordinator.groups.streams.streams_fencing import watch
from wirebroker.coordinator.groups.streams.streams_group import (
    NO_TOPOLOGY,
    StreamsGroup,
    StreamsGroupState,
    epoch_record,
)
from wirebroker.coordinator.groups.streams.streams_joining import raises_epoch
from wirebroker.coordinator.groups.streams.streams_member import TaskState
from wirebroker.coordinator.groups.streams.streams_records import (
    current_record,
    member_record,
    topology_record,
)
from wirebroker.coordinator.groups.streams.task_assignment import AssignTasks
from wirebroker.coordinator.groups.streams.task_offsets import NO_OFFSETS
from wirebroker.coordinator.groups.streams.task_reconciliation import TaskTarget, reconcile
from wirebroker.coordinator.groups.streams.tasks import NO_TASKS, Tasks, task_sets
from wirebroker.coordinator.groups.topologies.configured_topology import configure
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus
from wirebroker.coordinator.groups.topologies.topology import topology_of
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.prepared_topology import PreparedTopology
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.topologies.configured_topology import (
        ConfiguredSubtopology,
        ConfiguredTopology,
    )
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology
    from wirebroker.coordinator.outcome import Moment

# The epoch of a target assignment, and a member's part of it.
TargetOfMember: TypeAlias = "tuple[int, Tasks]"


class StreamsUpdate:
    """A member that joins or stays, in one request.

    Attributes:
        outcome: The records so far.
        member: The member as these records make it.
        group_epoch: The group's epoch as these records make it.
        topology: The group's topology.
        configured: The topology with the cluster's topics.
        configs: The settings of the assignor.
        needs_assignment: Whether something has changed that the target assignment depends on.
        statuses: Those of the response.
        prepared: The topology of the request or of the group, if it was prepared.
    """

    __slots__ = (
        "_body",
        "_metadata_hash",
        "configs",
        "configured",
        "group",
        "group_epoch",
        "member",
        "needs_assignment",
        "now",
        "outcome",
        "prepared",
        "shard",
        "statuses",
        "topology",
    )

    topology: StreamsTopology
    configured: ConfiguredTopology

    def __init__(
        self,
        shard: ServingShard,
        group: StreamsGroup,
        member: StreamsMember,
        outcome: Outcome,
        *,
        body: Any,
        now: Moment,
        prepared: PreparedTopology | None = None,
    ) -> None:
        self.shard = shard
        self.group = group
        self.member = member
        self.outcome = outcome
        self.now = now
        self.prepared = prepared
        self.group_epoch = group.epoch
        self.configs = streams_configs.assignment_configs(
            shard.settings.streams, shard.image, group.group_id
        )
        self.statuses: list[dict[str, Any]] = []
        self._body = body
        self._metadata_hash = group.metadata_hash
        self.needs_assignment = False

    def undo(self, error: ErrorCode, now: Moment) -> Outcome:
        """Restore the group's soft state and the member's timers, since the records are lost."""
        del error
        self.forget()
        shard, group_id, member_id = self.shard, self.group.group_id, self.member.member_id
        timing.cancel_member_timers(shard.timers, group_id, member_id)
        member = self.group.members.get(member_id)
        if member is not None:
            watch(shard, self.group, member, now)
        return Outcome()

    def forget(self) -> None:
        """Reset the soft state, so that the next request checks the topics again."""
        group, member_id = self.group, self.member.member_id
        group.checked_topics = None
        if member_id not in group.members:
            group.forget_offsets(member_id)
        if any(isinstance(effect, AssignTasks) for effect in self.outcome.effects):
            group.background_work = None

    # -- 1. what the member joins with -------------------------------------------------------

    def describe(self, updated: StreamsMember) -> None:
        """Add the records of a changed member and of the first topology.

        Raises:
            KafkaError: INVALID_REQUEST: the group has another topology.
        """
        group, before = self.group, self.member
        if updated != before:
            self.outcome.records.append(member_record(group.group_id, updated))
            self.needs_assignment = raises_epoch(before, updated)
        self.member = updated
        self.topology = self._topology()
        if group.topology is not None and updated.topology_epoch < group.topology.epoch:
            self.statuses.append(
                TopicStatus.STALE_TOPOLOGY.with_detail(
                    f"The member's topology epoch {updated.topology_epoch} is behind the group's "
                    f"topology epoch {group.topology.epoch}."
                )
            )

    def _topology(self) -> StreamsTopology:
        present, requested, prepared = self.group.topology, self._body.topology, self.prepared
        if requested is None:
            if present is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The group has no topology.")
            return present
        parsed = None if prepared is None else prepared.parsed
        topology = parsed or topology_of(requested)
        if present is None:
            record = None if prepared is None else prepared.record
            record = record or topology_record(self.group.group_id, topology)
            self.outcome.records.append(record)
            return topology
        if present.epoch <= topology.epoch and present != topology:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return present

    # -- 2. the topics -----------------------------------------------------------------------

    def configure(self) -> None:
        """Check the topics, and raise the group's epoch if something needs a new assignment.

        Raises:
            KafkaError: STREAMS_INVALID_TOPOLOGY, INVALID_REQUEST, UNKNOWN_SERVER_ERROR.
        """
        group, body = self.group, self._body
        self.configured = self._checked_topology()
        validated = NO_TOPOLOGY
        if self.configured.is_ready:
            validated = self.topology.epoch
            subtopologies = self.configured.tasks_by_subtopology
            for tasks in (body.active_tasks, body.standby_tasks, body.warmup_tasks):
                _check_tasks(subtopologies, tasks or ())
        self._note_offsets()
        is_changed = (
            self._metadata_hash != group.metadata_hash
            or validated != group.validated_topology_epoch
            or self.configs != group.assignment_configs
        )
        self.needs_assignment = self.needs_assignment or is_changed
        if not self.needs_assignment and not self._lacks_target():
            return
        self.group_epoch = group.epoch + 1
        self.outcome.records.append(
            epoch_record(
                group,
                self.group_epoch,
                metadata_hash=self._metadata_hash,
                validated_topology_epoch=validated,
                assignment_configs=self.configs,
            )
        )

    def _checked_topology(self) -> ConfiguredTopology:
        """Return the topology with its topics, computed again if they have changed."""
        group, image = self.group, self.shard.image
        is_first = group.topology is None
        configured = group.configured
        if not is_first and configured is not None and group.checked_topics is image.topics:
            return configured
        required = self.topology.required_topics
        self._metadata_hash = self.shard.topic_hashes.of_group(required)
        group.checked_topics = image.topics
        if is_first or configured is None or self._metadata_hash != group.metadata_hash:
            prepared = self.prepared
            configured = prepared and prepared.configured_now(
                self.topology, self.shard.topic_hashes
            )
            configured = configured or configure(self.topology, image.topics)
            group.use_configured(configured)
        return configured

    def _note_offsets(self) -> None:
        body, group = self._body, self.group
        if body.task_offsets is not None or body.task_end_offsets is not None:
            known = group.task_offsets.get(self.member.member_id, NO_OFFSETS)
            updated = known.updated(body.task_offsets, body.task_end_offsets)
            group.note_offsets(self.member.member_id, updated)

    def _lacks_target(self) -> bool:
        """Return whether the member of a stable group has other tasks than its target."""
        group, member = self.group, self.member
        if not member.is_reconciled_to(group.assignment_epoch):
            return False
        target = group.target.get(member.member_id, NO_TASKS)
        return not member.assigned.equals(target) and group.state is StreamsGroupState.STABLE

    # -- 3. the member's tasks ---------------------------------------------------------------

    def take_next_step(self, target: TargetOfMember) -> None:
        """Move the member one step toward its target.

        Raises:
            KafkaError: FENCED_MEMBER_EPOCH, UNKNOWN_SERVER_ERROR.
        """
        member, group = self.member, self.group
        epoch, tasks = target
        if member.is_reconciled_to(epoch):
            return
        aim = TaskTarget(epoch, tasks, _owned(self._body), group.processes)
        self.member = reconcile(member, aim)
        if self.member == member:
            return
        self.outcome.records.append(current_record(group.group_id, self.member))
        timers = self.shard.timers
        event = timing.TaskRevocation(group.group_id, member.member_id, self.member.epoch)
        if self.member.state is TaskState.UNREVOKED_TASKS:
            timeout_ms = self.member.rebalance_timeout_ms
            member_timers.expect_revocation(timers, event, timeout_ms, self.now)
        else:
            member_timers.cancel_revocation(timers, group.group_id, member.member_id)


def _check_tasks(subtopologies: Mapping[str, ConfiguredSubtopology], tasks: Iterable[Any]) -> None:
    """Refuse tasks that the topology does not have."""
    for entry in tasks:
        subtopology = subtopologies.get(entry.subtopology_id)
        if subtopology is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Subtopology {entry.subtopology_id} does not exist in the topology.",
            )
        partitions, valid = entry.partitions, range(subtopology.task_count)
        if partitions and not (min(partitions) in valid and max(partitions) in valid):
            invalid = next(each for each in partitions if each not in valid)
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Task {invalid} for subtopology {entry.subtopology_id} is invalid. Number of "
                f"tasks for this subtopology: {subtopology.task_count}",
            )


def _owned(body: Any) -> Tasks | None:
    if body.active_tasks is None or body.standby_tasks is None or body.warmup_tasks is None:
        return None
    return Tasks(
        task_sets(body.active_tasks),
        task_sets(body.standby_tasks),
        task_sets(body.warmup_tasks),
    )
