"""The common part of groups whose assignments the coordinator computes.

Consumer, share and streams groups. Everything but the attributes called soft comes from records;
only replay changes it.

Source: Kafka's ModernGroup, StreamsGroup.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from wirebroker.coordinator.outcome import Outcome, Timers

_FIRST_EPOCH: Final = 1
_NONE_REFUSED: Final = -1


class ModernMember(Protocol):
    """A member of any kind, an immutable value."""

    @property
    def member_id(self) -> str:
        """Id, unique in the group."""
        ...

    @property
    def epoch(self) -> int:
        """The assignment epoch that it has reached."""
        ...


MemberT = TypeVar("MemberT", bound=ModernMember)


class ModernGroup(ABC, Generic[MemberT]):
    """A group with members, epochs and a target assignment.

    Attributes:
        epoch: The group epoch. Rises with each change that needs a new assignment.
        metadata_hash: Hash of the subscribed topics in that epoch (metadata_hash.py).
        members: The members by id.
        assignment_epoch: The group epoch that the target assignment was computed for.
        assignment_ms: Wall time of that computation; 0: never, or without members.
        checked_topics: Soft. The topics of the metadata for which `metadata_hash` was checked;
            None: never.
        background_work: Soft. The effect or the job of the target assignment that is being computed
            in the background.
        refused_epoch: Soft. The group epoch whose assignment the log has refused, or -1.
    """

    __slots__ = (
        "assignment_epoch",
        "assignment_ms",
        "background_work",
        "checked_topics",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "refused_epoch",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, MemberT] = {}
        # Without members, the first epoch needs no computation.
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_ms = 0
        self.checked_topics: object | None = None
        self.background_work: object | None = None
        self.refused_epoch = _NONE_REFUSED

    # -- changes by replay -------------------------------------------------------------------

    def put(self, member: MemberT) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, None)

    @abstractmethod
    def _count(self, old: MemberT | None, new: MemberT | None) -> None:
        """Update what the group counts of its members, after the change of one."""

    # -- as any group ------------------------------------------------------------------------

    def member(self, member_id: str) -> MemberT:
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

    @property
    def is_empty(self) -> bool:
        """See Group."""
        return not self.members

    def check_delete(self) -> None:
        """See Group.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    @abstractmethod
    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""

    def answer_unloaded(self, outcome: Outcome) -> None:
        """See Group: no request waits."""

    def check(self) -> None:
        """See Group."""
        assert self.assignment_epoch <= self.epoch, (
            "the assignment epoch is at most the group epoch"
        )
