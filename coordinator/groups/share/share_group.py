"""A share group (KIP-932): its members, its epochs, its target assignment and its share topics.

Everything but the attributes called soft comes from records; only replay changes it.

Source: Kafka's ShareGroup, ModernGroup.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry
from wirebroker.coordinator.groups.member_timers import cancel_session
from wirebroker.coordinator.groups.modern_group import ModernGroup
from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
from wirebroker.coordinator.groups.share.share_records import group_tombstones

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.groups.share.share_topics import ShareTopics
    from wirebroker.coordinator.outcome import Moment, Timers

SHARE_PROTOCOL: Final = "share"


class ShareGroupState(StrEnum):
    """The states with their names in ShareGroupDescribe."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup(ModernGroup[ShareGroupMember]):
    """A share group; a `Group`. Its epoch rises with subscriptions, and with initialized topics.

    Attributes:
        target: Partitions by topic id, by member id.
        topics: The topics with share state; None without a record.
        complete_topics: Soft. The topics of the metadata for which all subscribed partitions are
            known to be initialized; None: unknown.
        initializing_since_ms: Soft. Wall time since when topics are known to be initializing.
    """

    __slots__ = (
        "_has_unassigned",
        "_names",
        "complete_topics",
        "initializing_since_ms",
        "metadata_bytes",
        "target",
        "topics",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.target: dict[str, Mapping[bytes, frozenset[int]]] = {}
        self.topics: ShareTopics | None = None
        # Size of what all members have joined with.
        self.metadata_bytes = 0
        # Numbers of members by topic name.
        self._names: Counter[str] = Counter()
        self.complete_topics: object | None = None
        self.initializing_since_ms: dict[bytes, int] = {}
        # None: unknown.
        self._has_unassigned: bool | None = None

    # -- changes by replay -------------------------------------------------------------------

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

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return group_tombstones(self.group_id)

    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""
        for member_id in self.members:
            cancel_session(timers, self.group_id, member_id)

    def check(self) -> None:
        """See Group."""
        super().check()
        assert self.target.keys() <= self.members.keys(), "only members have target assignments"
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
