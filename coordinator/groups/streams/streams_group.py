"""A streams group (KIP-1071): its topology, members, epochs and target assignment.

    no valid topology                          NotReady: topics are missing, or wrong
    group epoch > assignment epoch             Assigning: a new target assignment is due
    a member is not reconciled to it           Reconciling
    all members have their target assignment   Stable

Everything but the attributes called soft comes from records; only replay changes it.

Source: Kafka's StreamsGroup, StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.group_records import GroupRecordKind, WholeGroupKey, group_record
from wirebroker.coordinator.groups.committing_group import CommittingGroup
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
from wirebroker.coordinator.groups.streams.streams_records import group_tombstones
from wirebroker.coordinator.groups.streams.streams_timers import (
    cancel_initial_rebalance,
    cancel_member_timers,
)
from wirebroker.coordinator.groups.streams.task_offsets import NO_OFFSETS
from wirebroker.coordinator.groups.streams.task_processes import TaskProcesses
from wirebroker.coordinator.groups.streams.tasks import NO_TASKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.groups.streams.task_offsets import TaskOffsets
    from wirebroker.coordinator.groups.streams.tasks import Tasks
    from wirebroker.coordinator.groups.topologies.configured_topology import ConfiguredTopology
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology
    from wirebroker.coordinator.outcome import Timers

PROTOCOL_TYPE: Final = "streams"
NO_TOPOLOGY: Final = -1


class StreamsGroupState(StrEnum):
    """The states with their names in StreamsGroupDescribe."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup(CommittingGroup[StreamsMember]):
    """A streams group; a `Group`. Its epoch rises with members, topics and settings.

    Attributes:
        validated_topology_epoch: The topology epoch whose topics were right; else NO_TOPOLOGY.
        assignment_configs: The settings of the assignor in that epoch.
        description_epochs: What a Java broker with a topology description plugin has stored: the
            epochs of the stored and of the failed description.
        topology: The topology; None: not set, or not loaded.
        target: Tasks by member id.
        processes: The processes that have tasks.
        configured: Soft. The topology with the topics of the metadata; None: to be computed.
        task_offsets: Soft. Reported by members, by member id.
        shutdown_member_id: Soft. The member that requested the end of the application.
        endpoint_epoch: Soft. Rises when a member with an endpoint changes.
        endpoints: Soft. Responses' entries by member id, as far as computed.
    """

    __slots__ = (
        "_member_bytes",
        "_offset_bytes",
        "assignment_configs",
        "configured",
        "description_epochs",
        "endpoint_epoch",
        "endpoints",
        "processes",
        "shutdown_member_id",
        "target",
        "task_offsets",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = NO_TOPOLOGY
        self.assignment_configs: dict[str, str] = {}
        self.description_epochs = NO_TOPOLOGY, NO_TOPOLOGY
        self.topology: StreamsTopology | None = None
        self.target: dict[str, Tasks] = {}
        self.processes = TaskProcesses()
        self._member_bytes = 0
        self._offset_bytes = 0
        self.configured: ConfiguredTopology | None = None
        self.task_offsets: dict[str, TaskOffsets] = {}
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0
        self.endpoints: dict[str, dict[str, Any]] = {}

    # -- changes by replay -------------------------------------------------------------------

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        super().remove(member_id)
        self.forget_offsets(member_id)
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

    @property
    def _protocol_name(self) -> str:
        return "streams"

    def _needs_newer_commits(self, member: StreamsMember) -> bool:
        del member
        return True

    def _check_assigned(self, member: StreamsMember, request: CommitRequest, epoch: int) -> None:
        if self.topology is None:
            raise self._stale(member, "the topology is not available")
        for name, _, partitions in request.topics:
            subtopology = self.topology.subtopology_of.get(name)
            if subtopology is None:
                raise self._stale(member, f"topic {name} is not in the topology")
            for partition in partitions:
                task = f"task {subtopology}-{partition.partition_index}"
                assigned = member.active_task_epoch(subtopology, partition.partition_index)
                if assigned is None:
                    raise self._stale(member, f"{task} is not assigned to the member")
                if epoch < assigned:
                    reason = f"{task} was assigned in epoch {assigned}"
                    raise self._stale(member, f"epoch {epoch} is too old: {reason}")

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""
        cancel_initial_rebalance(timers, self.group_id)
        for member_id in self.members:
            cancel_member_timers(timers, self.group_id, member_id)

    def check(self) -> None:
        """See Group."""
        super().check()
        assert self.target.keys() <= self.members.keys(), "only members have target assignments"
        assert self.task_offsets.keys() <= self.members.keys(), "only members report offsets"
        assert self.endpoints.keys() <= self.members.keys(), "only members have endpoints"
        self.processes.check(self.members.values())
        assert self._member_bytes == sum(
            member.metadata_bytes for member in self.members.values()
        ), "the members' bytes are counted"
        assert self._offset_bytes == sum(
            offsets.size_bytes for offsets in self.task_offsets.values()
        ), "the offsets' bytes are counted"


def epoch_record(
    group: StreamsGroup,
    epoch: int,
    *,
    metadata_hash: int | None = None,
    validated_topology_epoch: int | None = None,
    assignment_configs: Mapping[str, str] | None = None,
) -> CoordinatorRecord:
    """Return the record of a group's epoch and its changes; None keeps a value."""
    configs = group.assignment_configs if assignment_configs is None else assignment_configs
    stored, failed = group.description_epochs
    return group_record(
        WholeGroupKey(GroupRecordKind.STREAMS_GROUP_METADATA, group.group_id),
        epoch=epoch,
        metadata_hash=group.metadata_hash if metadata_hash is None else metadata_hash,
        validated_topology_epoch=group.validated_topology_epoch
        if validated_topology_epoch is None
        else validated_topology_epoch,
        last_assignment_configs=[
            {"key": key, "value": value} for key, value in sorted(configs.items())
        ],
        stored_description_topology_epoch=stored,
        failed_description_topology_epoch=failed,
    )
