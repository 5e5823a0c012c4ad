"""The common part of groups whose members may be static, and commit offsets.

Consumer and streams groups. A commit is accepted with the member's epoch, or with an older one in
which all its partitions were already assigned.

Source: Kafka's ConsumerGroup, StreamsGroup.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.group import OffsetExpiry
from wirebroker.coordinator.groups.modern_group import ModernGroup, ModernMember

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.outcome import Moment, Timers

# First version of OffsetCommit for members of these groups.
_FIRST_COMMIT_VERSION: Final = 9


class CommittingMember(ModernMember, Protocol):
    """A member that may be static."""

    @property
    def instance_id(self) -> str | None:
        """Id of a static member."""
        ...


CommitterT = TypeVar("CommitterT", bound=CommittingMember)


class CommittingGroup(ModernGroup[CommitterT]):
    """A group with static members and commits of offsets.

    Attributes:
        static_members: Member ids by group instance id.
    """

    __slots__ = ("static_members",)

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}

    # -- changes by replay -------------------------------------------------------------------

    def put(self, member: CommitterT) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        super().put(member)
        if old is not None and old.instance_id is not None:
            self.static_members.pop(old.instance_id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        member = self.members.get(member_id)
        super().remove(member_id)
        instance = None if member is None else member.instance_id
        # A new incarnation may have taken the instance id.
        if instance is not None and self.static_members.get(instance) == member_id:
            del self.static_members[instance]

    # -- reading -----------------------------------------------------------------------------

    def static_member(self, instance_id: str | None) -> CommitterT | None:
        """Return the member with a group instance id."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    # -- as any group ------------------------------------------------------------------------

    @property
    def offset_expiry(self) -> OffsetExpiry | None:
        """See Group: each offset from its commit on."""
        return OffsetExpiry()

    def check_offset_delete(self) -> None:
        """See Group: allowed for topics that no member reads."""

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
        if request.version < _FIRST_COMMIT_VERSION and self._needs_newer_commits(member):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the "
                f"{self._protocol_name} group protocol",
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

    def check_fetch(self, request: Any) -> None:
        """See Group.

        Raises:
            KafkaError: As admit_commit, without UNSUPPORTED_VERSION.
        """
        epoch: int = request.member_epoch
        if request.member_id is None and epoch < 0:
            return
        member = self.member(request.member_id or "")
        if epoch != member.epoch:
            reason = f"epoch {epoch} is not the member's epoch, which is {member.epoch}"
            raise self._stale(member, reason)

    def _check_epoch(self, member: CommitterT, request: CommitRequest) -> None:
        epoch: int = request.body.generation_id_or_member_epoch
        if epoch == member.epoch:
            return
        if epoch > member.epoch:
            reason = f"epoch {epoch} is newer than the member's epoch {member.epoch}"
            raise self._stale(member, reason)
        self._check_assigned(member, request, epoch)

    # -- of each kind ------------------------------------------------------------------------

    @property
    @abstractmethod
    def _protocol_name(self) -> str:
        """The protocol of its members, for messages."""

    @abstractmethod
    def _needs_newer_commits(self, member: CommitterT) -> bool:
        """Return whether a member must use a version of OffsetCommit that has epochs."""

    @abstractmethod
    def _check_assigned(self, member: CommitterT, request: CommitRequest, epoch: int) -> None:
        """Refuse a commit of an older epoch for partitions that were not assigned in it.

        Raises:
            KafkaError: See `_stale`.
        """

    def _stale(self, member: CommitterT, reason: str) -> KafkaError:
        """Return the error for a wrong epoch."""
        del member
        return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, f"{reason}.")

    def check(self) -> None:
        """See Group."""
        super().check()
        static = {
            member.instance_id: member_id
            for member_id, member in self.members.items()
            if member.instance_id is not None
        }
        assert self.static_members == static, "an instance id has one member"
