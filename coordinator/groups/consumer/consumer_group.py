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
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.background import NONE_REFUSED
from wirebroker.coordinator.groups.consumer.consumer_records import group_tombstones
from wirebroker.coordinator.groups.consumer.consumer_timers import cancel_member_timers
from wirebroker.coordinator.groups.consumer.partition_epochs import PartitionEpochs
from wirebroker.coordinator.groups.consumer.subscriptions import Subscriptions
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry
from wirebroker.coordinator.groups.subscriptions import CONSUMER_PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers

_FIRST_EPOCH: Final = 1
# First version of OffsetCommit for members of the consumer protocol.
_FIRST_COMMIT_VERSION: Final = 9

NO_TARGET: Final[Mapping[bytes, frozenset[int]]] = {}


class ConsumerGroupState(StrEnum):
    """The states with their names in ConsumerGroupDescribe."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """A consumer group; a `Group`.

    Attributes:
        epoch: Rises with each change of subscriptions or of their topics.
        metadata_hash: Hash of the subscribed topics in that epoch (metadata_hash.py).
        assignment_epoch: The group epoch that `target` was computed for.
        assignment_ms: Wall time of that computation; 0: never, or without members.
        target: Partitions by topic id, by member id.
        partition_epochs: The owners of partitions.
        has_partition_metadata: Whether Kafka before 4.1 wrote a record that is to be deleted.
        checked_topics: Soft. The topics of the metadata for which `metadata_hash` was checked;
            None: never.
        is_resolving: Soft. Whether its regular expressions are being resolved.
        background_work: Soft. The effect or the job of the target assignment that is being computed
            in the background.
        refused_epoch: Soft. See AssignedGroup.
    """

    __slots__ = (
        "_assignors",
        "_classic_protocols",
        "_member_bytes",
        "assignment_epoch",
        "assignment_ms",
        "background_work",
        "checked_topics",
        "classic_count",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "is_resolving",
        "members",
        "metadata_hash",
        "partition_epochs",
        "refused_epoch",
        "static_members",
        "subscriptions",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # group instance id -> member id
        self.subscriptions = Subscriptions()
        self.partition_epochs = PartitionEpochs()
        # Without topics, the first epoch needs no computation.
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_ms = 0
        self.target: dict[str, Mapping[bytes, frozenset[int]]] = {}
        self.has_partition_metadata = False
        # Size of what all members have joined with, without the names of topics.
        self._member_bytes = 0
        # Numbers of members by preferred assignor.
        self._assignors: Counter[str] = Counter()
        # Members of the classic protocol, and how many support each of its protocols.
        self.classic_count = 0
        self._classic_protocols: Counter[str] = Counter()
        self.checked_topics: object | None = None
        self.is_resolving = False
        self.background_work: object | None = None
        self.refused_epoch = NONE_REFUSED

    # -- changes by replay -------------------------------------------------------------------

    def put(self, member: ConsumerMember) -> None:
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
        instance = member.instance_id
        # A new incarnation may have taken the instance id.
        if instance is not None and self.static_members.get(instance) == member_id:
            del self.static_members[instance]

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

    def member(self, member_id: str) -> ConsumerMember:
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

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member with a group instance id."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

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
    def is_empty(self) -> bool:
        """See Group."""
        return not self.members

    @property
    def offset_expiry(self) -> OffsetExpiry | None:
        """See Group: each offset from its commit on."""
        return OffsetExpiry()

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

    def admit_commit(self, request: CommitRequest, timers: Timers, now: Moment) -> None:
        """See Group; the session does not depend on commits.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION; STALE_MEMBER_EPOCH, or
                ILLEGAL_GENERATION for a member of the classic protocol.
        """
        del timers, now
        body = request.body
        if body.generation_id_or_member_epoch < 0 and not self.members:
            return
        member = self.member(body.member_id)
        if member.classic is None and request.version < _FIRST_COMMIT_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer "
                "group protocol",
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

    def _check_epoch(self, member: ConsumerMember, request: CommitRequest) -> None:
        """Check a commit's epoch: it may be an older one in which the partitions were assigned."""
        epoch: int = request.body.generation_id_or_member_epoch
        if epoch == member.epoch:
            return
        if epoch > member.epoch:
            raise _stale(member, f"epoch {epoch} is newer than the member's epoch {member.epoch}")
        for name, topic_id, partitions in request.topics:
            for partition in partitions:
                index: int = partition.partition_index
                assigned = member.partition_epoch(topic_id, index)
                if assigned is None:
                    raise _stale(member, f"{name}-{index} is not assigned to the member")
                if epoch < assigned:
                    reason = f"{name}-{index} was assigned to the member in epoch {assigned}"
                    raise _stale(member, f"epoch {epoch} is too old: {reason}")

    def check_fetch(self, request: Any) -> None:
        """See Group.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID; STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a member
                of the classic protocol.
        """
        epoch: int = request.member_epoch
        if request.member_id is None and epoch < 0:
            return
        member = self.member(request.member_id or "")
        if epoch != member.epoch:
            raise _stale(
                member, f"epoch {epoch} is not the member's epoch, which is {member.epoch}"
            )

    def check_offset_delete(self) -> None:
        """See Group: allowed for topics without subscribers."""

    def check_delete(self) -> None:
        """See Group.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return group_tombstones(self.group_id, self.members, self.subscriptions.resolved)

    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""
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
        assert self.assignment_epoch <= self.epoch, (
            "the assignment epoch is at most the group epoch"
        )
        self.subscriptions.check(self.members.values())
        self.partition_epochs.check(self.members)


def _stale(member: ConsumerMember, reason: str) -> KafkaError:
    """Return the error for a wrong epoch, which differs between the two protocols."""
    is_classic = member.classic is not None
    code = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, f"{reason}.")
