"""A member of a streams group: a thread of the application, its epochs and its tasks.

    STABLE             it has its whole target assignment
    UNREVOKED_TASKS    it has to give up tasks before it gets new ones
    UNRELEASED_TASKS   tasks of its target assignment still belong to others

Members are immutable: each change creates a new one. Records restore them.

Source: Kafka's StreamsGroupMember, MemberState; KIP-1071.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.coordinator.groups.streams.tasks import NOTHING_ASSIGNED, AssignedTasks

if TYPE_CHECKING:
    from collections.abc import Mapping

# Epochs in requests and records with a special meaning.
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
# A static member leaves for a while; its tasks stay assigned.
LEAVE_STATIC_EPOCH: Final = -2

NO_TAGS: Final[Mapping[str, str]] = {}


class TaskState(IntEnum):
    """The states with their numbers in records."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


class UserEndpoint(NamedTuple):
    """The address at which a process serves interactive queries (application.server)."""

    host: str
    port: int


def _no_tags() -> Mapping[str, str]:
    return NO_TAGS


@dataclass(slots=True, frozen=True)
class StreamsMember:
    """A member.

    Attributes:
        epoch: The assignment epoch that it has reached; LEAVE_STATIC_EPOCH while a static member
            is away.
        previous_epoch: The epoch before; a heartbeat with it may be a retry.
        topology_epoch: The epoch of its topology.
        process_id: The process whose thread it is.
        client_tags: Its tags for the placement of standby tasks, without effect in Kafka 4.4.
        assigned: Tasks that it may process.
        revoking: Tasks that it has to give up, and has not yet.
    """

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: TaskState = TaskState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=_no_tags)
    assigned: AssignedTasks = NOTHING_ASSIGNED
    revoking: AssignedTasks = NOTHING_ASSIGNED

    @property
    def metadata_bytes(self) -> int:
        """Number of letters that it joined with."""
        host = "" if self.user_endpoint is None else self.user_endpoint.host
        texts = (self.member_id, self.instance_id, self.rack_id, self.process_id, host)
        of_tags = sum(len(key) + len(value) for key, value in self.client_tags.items())
        return sum(len(text or "") for text in texts) + of_tags

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether it has its whole target assignment of an epoch."""
        return self.state is TaskState.STABLE and self.epoch == assignment_epoch

    def active_task_epoch(self, subtopology: str, partition: int) -> int | None:
        """Return the epoch in which it got an active task that it still has; None if it has not."""
        epoch = self.assigned.active.get(subtopology, {}).get(partition)
        return self.revoking.active.get(subtopology, {}).get(partition) if epoch is None else epoch

    def with_epoch(self, epoch: int, **changes: Any) -> StreamsMember:
        """Return the member in another epoch, with other changes."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, **changes)

    def as_away(self) -> StreamsMember:
        """Return a static member that has left for a while."""
        active = {
            subtopology: dict.fromkeys(epochs, 0)
            for subtopology, epochs in self.assigned.active.items()
        }
        assigned = self.assigned._replace(active=active)
        return replace(self, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoking=NOTHING_ASSIGNED)

    def as_gone(self) -> StreamsMember:
        """Return a member whose current assignment was deleted."""
        return replace(
            self,
            epoch=LEAVE_EPOCH,
            previous_epoch=LEAVE_EPOCH,
            assigned=NOTHING_ASSIGNED,
            revoking=NOTHING_ASSIGNED,
        )
