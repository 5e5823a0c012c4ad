"""A streams group (KIP-1071): its topology, members, epochs and target assignment.

    no valid topology                          NotReady: topics are missing, or wrong
    group epoch > assignment epoch             Assigning: a new target assignment is due
    a member is not reconciled to it           Reconciling
    all members have their target assignment   Stable

Everything but the attributes called soft comes from records; only replay changes it.

Source: Kafka's StreamsGroup.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.background import NONE_REFUSED
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry
from wirebroker.coordinator.groups.streams.streams_records import group_tombstones
from wirebroker.coordinator.groups.streams.streams_timers import (
    cancel_initial_rebalance,
    cancel_member_timers,
)
from wirebroker.coordinator.groups.streams.task_offsets import NO_OFFSETS
from wirebroker.coordinator.groups.streams.task_processes import TaskProcesses
from wirebroker.coordinator.groups.streams.tasks import NO_TASKS

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.task_offsets import TaskOffsets
    from wirebroker.coordinator.groups.streams.tasks import Tasks
    from wirebroker.coordinator.groups.topologies.configured_topology import ConfiguredTopology
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers

PROTOCOL_TYPE: Final = "streams"
_FIRST_EPOCH: Final = 1
NO_TOPOLOGY: Final = -1
# First version of OffsetCommit for members of the streams protocol.
_FIRST_COMMIT_VERSION: Final = 9


class StreamsGroupState(StrEnum):
    """The states with their names in StreamsGroupDescribe."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup:
    """A streams group; a `Group`.

    Attributes:
        epoch: Rises with each change of members, topics and settings of assignments.
        metadata_hash: Hash of the required topics in that epoch (metadata_hash.py).
        validated_topology_epoch: The topology epoch whose topics were right; else NO_TOPOLOGY.
        assignment_configs: The settings of the assignor in that epoch.
        description_epochs: What a Java broker with a topology description plugin has stored: the
            epochs of the stored and of the failed description.
        topology: The topology; None: not set, or not loaded.
        assignment_epoch: The group epoch that `target` was computed for.
        assignment_ms: Wall time of that computation; 0: never, or without members.
        target: Tasks by member id.
        processes: The processes that have tasks.
        configured: Soft. The topology with the topics of the metadata; None: to be computed.
        checked_topics: Soft. The topics of the metadata for which `metadata_hash` was checked.
        task_offsets: Soft. Reported by members, by member id.
        shutdown_member_id: Soft. The member that requested the end of the application.
        endpoint_epoch: Soft. Rises when a member with an endpoint changes.
        endpoints: Soft. Responses' entries by member id, as far as computed.
        background_work: Soft. The effect or the job of the target assignment that is being computed
            in the background.
        refused_epoch: Soft. See AssignedGroup.
    """

    __slots__ = (
        "_member_bytes",
        "_offset_bytes",
        "assignment_configs",
        "assignment_epoch",
        "assignment_ms",
        "background_work",
        "checked_topics",
        "configured",
        "description_epochs",
        "endpoint_epoch",
        "endpoints",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "processes",
        "refused_epoch",
        "shutdown_member_id",
        "static_members",
        "target",
        "task_offsets",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = NO_TOPOLOGY
        self.assignment_configs: dict[str, str] = {}
        self.description_epochs = NO_TOPOLOGY, NO_TOPOLOGY
        self.topology: StreamsTopology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.static_members: dict[str, str] = {}  # group instance id -> member id
        # Without members, the first epoch needs no computation.
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_ms = 0
        self.target: dict[str, Tasks] = {}
        self.processes = TaskProcesses()
        self._member_bytes = 0
        self._offset_bytes = 0
        self.configured: ConfiguredTopology | None = None
        self.checked_topics: object | None = None
        self.task_offsets: dict[str, TaskOffsets] = {}
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0
        self.endpoints: dict[str, dict[str, Any]] = {}
        self.background_work: object | None = None
        self.refused_epoch = NONE_REFUSED

    # -- changes by replay -------------------------------------------------------------------

    def put(self, member: StreamsMember) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)
        if old is not None and old.instance_id is not None:
            self.static_members.pop(old.instance_id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, None)
        self.forget_offsets(member_id)
        instance = member.instance_id
        # A new incarnation may have taken the instance id.
        if instance is not None and self.static_members.get(instance) == member_id:
            del self.static_members[instance]
        if not self.members:
            self.shutdown_member_id = None

    def _count(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        self.processes.replace(old, new)
        for member, difference in ((old, -1), (new, 1)):
            if member is not None:
                self.endpoints.pop(member.member_id, None)
                self._member_bytes += difference * member.metadata_bytes

    # -- soft state --------------------------------------------------------------------------

    def note_offsets(self, member_id: str, offsets: TaskOffsets) -> None:
        """Set the offsets that a member reports."""
        self.forget_offsets(member_id)
        self.task_offsets[member_id] = offsets
        self._offset_bytes += offsets.size_bytes

    def forget_offsets(self, member_id: str) -> None:
        """Remove the offsets of a member, if there are any."""
        self._offset_bytes -= self.task_offsets.pop(member_id, NO_OFFSETS).size_bytes

    def use_configured(self, configured: ConfiguredTopology | None) -> None:
        """Set the topology with its topics."""
        self.configured = configured
        self.endpoints.clear()

    # -- reading -----------------------------------------------------------------------------

    @property
    def state(self) -> StreamsGroupState:
        """The state."""
        if not self.members:
            return StreamsGroupState.EMPTY
        topology = self.topology
        if topology is None or topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def member(self, member_id: str) -> StreamsMember:
        """Return a member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> StreamsMember | None:
        """Return the member with a group instance id."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: StreamsMember) -> Tasks:
        """Return the target assignment of a member, or of the one whose place it takes."""
        replaced = self.static_member(member.instance_id)
        member_id = member.member_id if replaced is None else replaced.member_id
        return self.target.get(member_id, NO_TASKS)

    # -- as any group ------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        """See Group."""
        return GroupType.STREAMS

    @property
    def listed_protocol_type(self) -> str:
        """See Group."""
        return PROTOCOL_TYPE

    @property
    def state_name(self) -> str:
        """See Group."""
        return self.state

    @property
    def is_empty(self) -> bool:
        """See Group."""
        return not self.members

    @property
    def offset_expiry(self) -> OffsetExpiry | None:
        """See Group: each offset from its commit on."""
        return OffsetExpiry()

    @property
    def metadata_bytes(self) -> int:
        """See Group: of the members, of what they report, and of the topology."""
        of_topology = 0 if self.topology is None else self.topology.size_bytes
        return self._member_bytes + self._offset_bytes + of_topology

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """See Group; each member brings the topology."""
        member = self.members.get(member_id) or self.static_member(instance_id)
        if member is None:
            return 0
        of_offsets = self.task_offsets.get(member.member_id, NO_OFFSETS).size_bytes
        of_topology = 0 if self.topology is None else self.topology.size_bytes
        return member.metadata_bytes + of_offsets + of_topology

    def is_subscribed_to(self, topic: str) -> bool:
        """See Group: topics that it reads, also the internal ones among them."""
        topology = self.topology
        return bool(self.members) and topology is not None and topic in topology.subtopology_of

    def admit_commit(self, request: CommitRequest, timers: Timers, now: Moment) -> None:
        """See Group; the session does not depend on commits.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH.
        """
        del timers, now
        body = request.body
        if body.generation_id_or_member_epoch < 0 and not self.members:
            return
        member = self.member(body.member_id)
        if request.version < _FIRST_COMMIT_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the streams group "
                "protocol",
            )
        self._check_epoch(member, request)

    def check_transactional_commit(self, request: CommitRequest) -> None:
        """See Group; a producer without a member is allowed (KIP-447).

        Raises:
            KafkaError: As admit_commit, without UNSUPPORTED_VERSION.
        """
        body = request.body
        epoch: int = body.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return
        if epoch == -1 and not body.member_id and body.group_instance_id is None:
            return
        self._check_epoch(self.member(body.member_id), request)

    def _check_epoch(self, member: StreamsMember, request: CommitRequest) -> None:
        """Check a commit's epoch: it may be an older one in which the tasks were assigned."""
        epoch: int = request.body.generation_id_or_member_epoch
        if epoch == member.epoch:
            return
        if epoch > member.epoch:
            raise _stale(f"epoch {epoch} is newer than the member's epoch {member.epoch}")
        if self.topology is None:
            raise _stale("the topology is not available")
        for name, _, partitions in request.topics:
            subtopology = self.topology.subtopology_of.get(name)
            if subtopology is None:
                raise _stale(f"topic {name} is not in the topology")
            for partition in partitions:
                index: int = partition.partition_index
                assigned = member.active_task_epoch(subtopology, index)
                if assigned is None:
                    raise _stale(f"task {subtopology}-{index} is not assigned to the member")
                if epoch < assigned:
                    reason = f"task {subtopology}-{index} was assigned in epoch {assigned}"
                    raise _stale(f"epoch {epoch} is too old: {reason}")

    def check_fetch(self, request: Any) -> None:
        """See Group.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
        """
        epoch: int = request.member_epoch
        if request.member_id is None and epoch < 0:
            return
        member = self.member(request.member_id or "")
        if epoch != member.epoch:
            raise _stale(f"epoch {epoch} is not the member's epoch, which is {member.epoch}")

    def check_offset_delete(self) -> None:
        """See Group: allowed for topics that are not read."""

    def check_delete(self) -> None:
        """See Group.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""
        cancel_initial_rebalance(timers, self.group_id)
        for member_id in self.members:
            cancel_member_timers(timers, self.group_id, member_id)

    def answer_unloaded(self, outcome: Outcome) -> None:
        """See Group: no request waits."""

    def check(self) -> None:
        """See Group."""
        static = {
            member.instance_id: member_id
            for member_id, member in self.members.items()
            if member.instance_id is not None
        }
        assert self.static_members == static, "an instance id has one member"
        assert self.target.keys() <= self.members.keys(), "only members have target assignments"
        assert self.task_offsets.keys() <= self.members.keys(), "only members report offsets"
        assert self.endpoints.keys() <= self.members.keys(), "only members have endpoints"
        assert self.assignment_epoch <= self.epoch, (
            "the assignment epoch is at most the group epoch"
        )
        self.processes.check(self.members.values())
        assert self._member_bytes == sum(
            member.metadata_bytes for member in self.members.values()
        ), "the members' bytes are counted"
        assert self._offset_bytes == sum(
            offsets.size_bytes for offsets in self.task_offsets.values()
        ), "the offsets' bytes are counted"


def _stale(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, f"{reason}.")
