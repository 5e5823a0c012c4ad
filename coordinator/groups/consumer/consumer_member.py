"""A member of a consumer group: its subscription, its epochs and its partitions.

    STABLE                  it has its whole target assignment
    UNREVOKED_PARTITIONS    it has to give up partitions before it gets new ones
    UNRELEASED_PARTITIONS   partitions of its target assignment still belong to other members

Members are immutable: each change creates a new one. Records restore them.

Source: Kafka's ConsumerGroupMember, MemberState; KIP-848.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from wirebroker.coordinator.groups.classic.classic_member import Protocols  # noqa: TC001 - compiled tuples look for it

if TYPE_CHECKING:
    from collections.abc import Mapping


# Epochs in requests and records with a special meaning.
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
# A static member leaves for a while; its partitions stay assigned.
LEAVE_STATIC_EPOCH: Final = -2

# The epochs in which a member got its partitions, by topic id and partition.
AssignedPartitions: TypeAlias = "Mapping[bytes, Mapping[int, int]]"
NO_PARTITIONS: Final[AssignedPartitions] = {}


def _no_partitions() -> AssignedPartitions:
    return NO_PARTITIONS


class MemberState(IntEnum):
    """The states with their numbers in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ClassicUse(NamedTuple):
    """JoinGroup fields of a member of the classic protocol (online migration)."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(slots=True, frozen=True)
class ConsumerMember:
    """A member.

    Attributes:
        epoch: The assignment epoch that it has reached; LEAVE_STATIC_EPOCH while a static member
            is away.
        previous_epoch: The epoch before; a heartbeat with it may be a retry.
        topic_names: The topics that it subscribes to by name.
        topic_regex: The regular expression that it subscribes with; empty without one.
        server_assignor: The assignor that it prefers; None: the group's default.
        assigned: Partitions that it may read.
        revoking: Partitions that it has to give up, and has not yet.
        classic: None for a member of the consumer protocol.
    """

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    server_assignor: str | None = None
    assigned: AssignedPartitions = field(default_factory=_no_partitions)
    revoking: AssignedPartitions = field(default_factory=_no_partitions)
    classic: ClassicUse | None = None

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that it joined with, without the names of topics."""
        protocols = () if self.classic is None else self.classic.protocols
        of_protocols = sum(len(name) + len(metadata) for name, metadata in protocols)
        texts = (self.member_id, self.instance_id, self.rack_id, self.topic_regex)
        return sum(len(text or "") for text in texts) + of_protocols

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether it has its whole target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def partition_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which it got a partition that it still has; None if it has not."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch

    def with_epoch(self, epoch: int, **changes: Any) -> ConsumerMember:
        """Return the member in another epoch, with other changes."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, **changes)

    def as_away(self) -> ConsumerMember:
        """Return a static member that has left for a while."""
        assigned = {
            topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in self.assigned.items()
        }
        return replace(self, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoking=NO_PARTITIONS)

    def as_gone(self) -> ConsumerMember:
        """Return a member whose current assignment was deleted."""
        return replace(
            self,
            epoch=LEAVE_EPOCH,
            previous_epoch=LEAVE_EPOCH,
            assigned=NO_PARTITIONS,
            revoking=NO_PARTITIONS,
        )
