"""A share group (KIP-932): its members, its epochs, its target assignment and its share topics.

Everything but the attributes called soft comes from records; only replay changes it.

Source: Kafka's ShareGroup, ModernGroup.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.background import NONE_REFUSED
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry
from wirebroker.coordinator.groups.share.share_records import group_tombstones
from wirebroker.coordinator.groups.share.share_timers import cancel_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_topics import ShareTopics
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers

_FIRST_EPOCH: Final = 1
SHARE_PROTOCOL: Final = "share"


class ShareGroupState(StrEnum):
    """The states with their names in ShareGroupDescribe."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup:
    """A share group; a `Group`.

    Attributes:
        epoch: Rises with each change of subscriptions, of their topics, and of initialized topics.
        metadata_hash: Hash of the subscribed topics in that epoch (metadata_hash.py).
        assignment_epoch: The group epoch that `target` was computed for.
        assignment_ms: Wall time of that computation; 0: never, or without members.
        target: Partitions by topic id, by member id.
        topics: The topics with share state; None without a record.
        checked_topics: Soft. The topics of the metadata for which `metadata_hash` was checked;
            None: never.
        complete_topics: Soft. The topics of the metadata for which all subscribed partitions are
            known to be initialized; None: unknown.
        initializing_since_ms: Soft. Wall time since when topics are known to be initializing.
        background_work: Soft. The effect or the job of the target assignment that is being computed
            in the background.
        refused_epoch: Soft. See AssignedGroup.
    """

    __slots__ = (
        "_has_unassigned",
        "_names",
        "assignment_epoch",
        "assignment_ms",
        "background_work",
        "checked_topics",
        "complete_topics",
        "epoch",
        "group_id",
        "initializing_since_ms",
        "members",
        "metadata_bytes",
        "metadata_hash",
        "refused_epoch",
        "target",
        "topics",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ShareGroupMember] = {}
        # Without topics, the first epoch needs no computation.
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_ms = 0
        self.target: dict[str, Mapping[bytes, frozenset[int]]] = {}
        self.topics: ShareTopics | None = None
        # Size of what all members have joined with.
        self.metadata_bytes = 0
        # Numbers of members by topic name.
        self._names: Counter[str] = Counter()
        self.checked_topics: object | None = None
        self.complete_topics: object | None = None
        self.initializing_since_ms: dict[bytes, int] = {}
        self.background_work: object | None = None
        self.refused_epoch = NONE_REFUSED
        # None: unknown.
        self._has_unassigned: bool | None = None

    # -- changes by replay -------------------------------------------------------------------

    def put(self, member: ShareGroupMember) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, None)

    def _count(self, old: ShareGroupMember | None, new: ShareGroupMember | None) -> None:
        for member, difference in ((old, -1), (new, 1)):
            if member is not None:
                self.metadata_bytes += difference * member.metadata_bytes
        if old is None or new is None or old.topic_names is not new.topic_names:
            _recount(self._names, old, new)
            self._has_unassigned = None
            self.complete_topics = None

    def put_target(self, member_id: str, partitions: Mapping[bytes, frozenset[int]] | None) -> None:
        """Replace the target assignment of a member; None removes it."""
        if partitions is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = partitions
        self._has_unassigned = None

    def put_topics(self, topics: ShareTopics | None) -> None:
        """Replace the topics with share state."""
        self.topics = topics
        self._has_unassigned = None
        self.complete_topics = None
        initializing = () if topics is None else topics.initializing
        for topic_id in self.initializing_since_ms.keys() - initializing:
            del self.initializing_since_ms[topic_id]

    # -- reading -----------------------------------------------------------------------------

    @property
    def state(self) -> ShareGroupState:
        """The state."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def topic_names(self) -> Mapping[str, int]:
        """Number of members by the name of a topic that they subscribe to."""
        return self._names

    def names_after(
        self, old: ShareGroupMember | None, new: ShareGroupMember | None
    ) -> Mapping[str, int]:
        """Return `topic_names` after a change of one member."""
        names = Counter(self._names)
        _recount(names, old, new)
        return names

    def member(self, member_id: str) -> ShareGroupMember:
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
    def has_unassigned(self) -> bool:
        """Whether partitions of subscribed topics are initialized, but in no target assignment."""
        if self._has_unassigned is None:
            self._has_unassigned = self._find_unassigned()
        return self._has_unassigned

    def _find_unassigned(self) -> bool:
        if self.topics is None:
            return False
        wanted = {
            topic_id: topic.partitions
            for topic_id, topic in self.topics.initialized.items()
            if topic.name in self._names
        }
        assigned: dict[bytes, set[int]] = {topic_id: set() for topic_id in wanted}
        for target in self.target.values():
            for topic_id, partitions in target.items():
                if topic_id in assigned:
                    assigned[topic_id] |= partitions
        return assigned != wanted

    # -- as any group ------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        """See Group."""
        return GroupType.SHARE

    @property
    def listed_protocol_type(self) -> str:
        """See Group."""
        return SHARE_PROTOCOL

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
        """None: share groups never expire, and have no committed offsets."""
        return None

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """See Group."""
        del instance_id
        member = self.members.get(member_id)
        return 0 if member is None else member.metadata_bytes

    def is_subscribed_to(self, topic: str) -> bool:
        """See Group."""
        return topic in self._names

    def admit_commit(self, request: CommitRequest, timers: Timers, now: Moment) -> None:
        """Refuse all commits.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        del request, timers, now
        raise self._without_offsets()

    def check_transactional_commit(self, request: CommitRequest) -> None:
        """Refuse all commits.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        del request
        raise self._without_offsets()

    def check_fetch(self, group: Any) -> None:
        """Allow it: there are no offsets to read."""

    def check_offset_delete(self) -> None:
        """Refuse: offsets of share groups are deleted by DeleteShareGroupOffsets.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        raise self._without_offsets()

    def _without_offsets(self) -> KafkaError:
        return KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group."
        )

    def check_delete(self) -> None:
        """See Group.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return group_tombstones(self.group_id)

    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""
        for member_id in self.members:
            cancel_session(timers, self.group_id, member_id)

    def answer_unloaded(self, outcome: Outcome) -> None:
        """See Group: no request waits."""

    def check(self) -> None:
        """See Group."""
        assert self.target.keys() <= self.members.keys(), "only members have target assignments"
        assert self.assignment_epoch <= self.epoch, (
            "the assignment epoch is at most the group epoch"
        )
        names: Counter[str] = Counter()
        for member in self.members.values():
            names.update(member.topic_names)
        assert self._names == names, "topics are counted"
        assert self.metadata_bytes == sum(
            member.metadata_bytes for member in self.members.values()
        ), "bytes are counted"
        if self._has_unassigned is not None:
            assert self._has_unassigned == self._find_unassigned(), "a cached answer is valid"


def _recount(
    names: Counter[str], old: ShareGroupMember | None, new: ShareGroupMember | None
) -> None:
    if new is not None:
        names.update(new.topic_names)
    if old is not None:
        for name in old.topic_names:
            names[name] -= 1
            if not names[name]:
                del names[name]
