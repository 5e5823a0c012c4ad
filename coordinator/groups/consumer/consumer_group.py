"""A consumer group (KIP-848): its members, its epochs and its target assignment.

    group epoch > assignment epoch             Assigning: a new target assignment is due
    a member is not reconciled to it           Reconciling
    all members have their target assignment   Stable

Everything but the attributes called soft comes from records; only replay changes it.

Source: Kafka's ConsumerGroup, ModernGroup; KIP-848.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.committing_group import CommittingGroup
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
from wirebroker.coordinator.groups.consumer.consumer_records import group_tombstones
from wirebroker.coordinator.groups.consumer.consumer_timers import cancel_member_timers
from wirebroker.coordinator.groups.consumer.partition_epochs import PartitionEpochs
from wirebroker.coordinator.groups.consumer.subscriptions import Subscriptions
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.subscriptions import CONSUMER_PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.consumer.remembered_heartbeat import RememberedHeartbeat
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.outcome import Timers

NO_TARGET: Final[Mapping[bytes, frozenset[int]]] = {}


class ConsumerGroupState(StrEnum):
    """The states with their names in ConsumerGroupDescribe."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(CommittingGroup[ConsumerMember]):
    """A consumer group; a `Group`. Its epoch rises with subscriptions and their topics.

    Attributes:
        target: Partitions by topic id, by member id.
        partition_epochs: The owners of partitions.
        has_partition_metadata: Whether Kafka before 4.1 wrote a record that is to be deleted.
        is_resolving: Soft. Whether its regular expressions are being resolved.
        repeated: Soft. Heartbeats that changed nothing, by their bytes (repeated.py).
    """

    __slots__ = (
        "_assignors",
        "_classic_protocols",
        "_member_bytes",
        "classic_count",
        "has_partition_metadata",
        "is_resolving",
        "partition_epochs",
        "repeated",
        "subscriptions",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.subscriptions = Subscriptions()
        self.partition_epochs = PartitionEpochs()
        self.target: dict[str, Mapping[bytes, frozenset[int]]] = {}
        self.has_partition_metadata = False
        # Size of what all members have joined with, without the names of topics.
        self._member_bytes = 0
        # Numbers of members by preferred assignor.
        self._assignors: Counter[str] = Counter()
        # Members of the classic protocol, and how many support each of its protocols.
        self.classic_count = 0
        self._classic_protocols: Counter[str] = Counter()
        self.is_resolving = False
        self.repeated: dict[bytes, RememberedHeartbeat] = {}

    # -- changes by replay -------------------------------------------------------------------

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        self.subscriptions.replace(old, new)
        self.partition_epochs.replace(old, new)
        for member, difference in ((old, -1), (new, 1)):
            if member is None:
                continue
            self._member_bytes += difference * member.metadata_bytes
            if member.server_assignor is not None:
                self._assignors[member.server_assignor] += difference
            if member.classic is not None:
                self.classic_count += difference
                for name, _ in member.classic.protocols:
                    self._classic_protocols[name] += difference

    # -- reading -----------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        """The state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def target_of(self, member: ConsumerMember) -> Mapping[bytes, frozenset[int]]:
        """Return the target assignment of a member, or of the one whose place it takes."""
        if member.instance_id is None:
            return self.target.get(member.member_id, NO_TARGET)
        member_id = self.static_members.get(member.instance_id)
        return NO_TARGET if member_id is None else self.target.get(member_id, NO_TARGET)

    def preferred_assignor(
        self, default: str, old: ConsumerMember | None = None, new: ConsumerMember | None = None
    ) -> str:
        """Return the assignor that most members prefer, after a change of one of them."""
        counts = Counter(self._assignors)
        for member, difference in ((old, -1), (new, 1)):
            if member is not None and member.server_assignor is not None:
                counts[member.server_assignor] += difference
        most = max(counts.values(), default=0)
        preferred = [name for name, count in counts.items() if count == most]
        return default if not most or default in preferred else min(preferred)

    def supports_classic(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Return whether a member of the classic protocol may join with these protocols."""
        if protocol_type != CONSUMER_PROTOCOL:
            return False
        if not self.members:
            return bool(protocols)
        return any(self._classic_protocols[name] == self.classic_count for name in protocols)

    # -- as any group ------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        """See Group."""
        return GroupType.CONSUMER

    @property
    def listed_protocol_type(self) -> str:
        """See Group."""
        return CONSUMER_PROTOCOL

    @property
    def state_name(self) -> str:
        """See Group."""
        return self.state

    @property
    def metadata_bytes(self) -> int:
        """See Group; equal subscriptions are stored, and counted, once."""
        return self._member_bytes + self.subscriptions.names_bytes

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """See Group."""
        member = self.members.get(member_id) or self.static_member(instance_id)
        if member is None:
            return 0
        return member.metadata_bytes + self.subscriptions.bytes_only_of(member)

    def is_subscribed_to(self, topic: str) -> bool:
        """See Group."""
        return self.subscriptions.contains(topic)

    @property
    def _protocol_name(self) -> str:
        return "consumer"

    def _needs_newer_commits(self, member: ConsumerMember) -> bool:
        return member.classic is None

    def _check_assigned(self, member: ConsumerMember, request: CommitRequest, epoch: int) -> None:
        for name, topic_id, partitions in request.topics:
            for partition in partitions:
                index: int = partition.partition_index
                assigned = member.partition_epoch(topic_id, index)
                if assigned is None:
                    raise self._stale(member, f"{name}-{index} is not assigned to the member")
                if epoch < assigned:
                    reason = f"{name}-{index} was assigned to the member in epoch {assigned}"
                    raise self._stale(member, f"epoch {epoch} is too old: {reason}")

    def _stale(self, member: ConsumerMember, reason: str) -> KafkaError:
        """Return the error for a wrong epoch, which differs between the two protocols."""
        is_classic = member.classic is not None
        code = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
        return KafkaError(code, f"{reason}.")

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return group_tombstones(self.group_id, self.members, self.subscriptions.resolved)

    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""
        for member_id in self.members:
            cancel_member_timers(timers, self.group_id, member_id)

    def check(self) -> None:
        """See Group."""
        super().check()
        assert self.target.keys() <= self.members.keys(), "only members have target assignments"
        self.subscriptions.check(self.members.values())
        self.partition_epochs.check(self.members)
