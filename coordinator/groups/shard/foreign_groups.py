"""Groups of unsupported kinds: share and streams groups.

Only their ids and members are read, from the keys of their records; records of other kinds are
ignored.

Source: Kafka's GroupMetadataManager.replay; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.group_records import GroupMemberKey, GroupRecordKind
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.codecs.group_records import WholeGroupKey
    from wirebroker.coordinator.groups.group import CommitRequest, Group
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers

# The records that say that a group exists, or has a member.
_TYPES: Final = {
    GroupRecordKind.SHARE_GROUP_METADATA: GroupType.SHARE,
    GroupRecordKind.SHARE_GROUP_MEMBER_METADATA: GroupType.SHARE,
    GroupRecordKind.STREAMS_GROUP_METADATA: GroupType.STREAMS,
    GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA: GroupType.STREAMS,
}


class ForeignGroup:
    """A group of an unsupported kind, without soft state."""

    __slots__ = ("group_id", "group_type", "members")

    def __init__(self, group_id: str, group_type: GroupType) -> None:
        assert group_type is not GroupType.CLASSIC, "classic groups are served"
        self.group_id = group_id
        self.group_type = group_type
        self.members: set[str] = set()

    @property
    def listed_protocol_type(self) -> str:
        """See Group."""
        return self.group_type

    @property
    def is_empty(self) -> bool:
        """See Group."""
        return not self.members

    @property
    def state_name(self) -> str:
        """State as far as known; Kafka has more."""
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def offset_expiry(self) -> OffsetExpiry | None:
        """None: offsets never expire here."""
        return None

    @property
    def metadata_bytes(self) -> int:
        """Zero: only ids are kept."""
        return 0

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """Return zero."""
        del member_id, instance_id
        return 0

    def is_subscribed_to(self, topic: str) -> bool:
        """Return False: callers have refused if there are members."""
        del topic
        return False

    def admit_commit(self, request: CommitRequest, timers: Timers, now: Moment) -> None:
        """Refuse all commits except an administrator's to a group without members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND for a share group, UNKNOWN_MEMBER_ID.
        """
        del timers, now
        self._check_has_offsets()
        if self.members or request.body.generation_id_or_member_epoch >= 0:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_transactional_commit(self, request: CommitRequest) -> None:
        """Refuse a member's commit; one without a member is allowed, as in Kafka (KIP-447).

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND for a share group, UNKNOWN_MEMBER_ID.
        """
        self._check_has_offsets()
        body = request.body
        names_somebody = body.member_id or body.group_instance_id is not None
        if body.generation_id_or_member_epoch >= 0 or (names_somebody and self.members):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_fetch(self, group: Any) -> None:
        """Allow it."""

    def check_offset_delete(self) -> None:
        """Refuse while there are members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND for a share group, NON_EMPTY_GROUP.
        """
        self._check_has_offsets()
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """Refuse.

        Raises:
            KafkaError: NON_EMPTY_GROUP; GROUP_ID_NOT_FOUND without members.
        """
        used, unknown = ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND
        raise KafkaError(used if self.members else unknown)

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return nothing: `check_delete` has refused, and these groups do not expire."""
        return []

    def cancel_timers(self, timers: Timers) -> None:
        """Do nothing."""

    def answer_unloaded(self, outcome: Outcome) -> None:
        """Do nothing."""

    def check(self) -> None:
        """Do nothing."""

    def _check_has_offsets(self) -> None:
        if self.group_type is GroupType.SHARE:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)


def replay(
    groups: dict[str, Group], key: WholeGroupKey | GroupMemberKey, value: bytes | None
) -> Group | None:
    """Apply a record; return the group of another kind that it replaces."""
    group_type = _TYPES.get(key.kind)
    if group_type is None:
        return None
    group_id = key.group_id
    member_id = key.member_id if isinstance(key, GroupMemberKey) else None
    existing = groups.get(group_id)
    group = existing if isinstance(existing, ForeignGroup) else None
    if value is None:
        if group is not None and member_id is None:
            del groups[group_id]
        elif group is not None:
            group.members.discard(member_id or "")
        return None
    # Compaction may move the group's record after its members'.
    if group is None or group.group_type is not group_type:
        group = groups[group_id] = ForeignGroup(group_id, group_type)
    if member_id is not None:
        group.members.add(member_id)
    return None if existing is None or existing is group else existing
