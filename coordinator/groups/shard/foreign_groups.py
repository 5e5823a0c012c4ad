"""Groups of unsupported kinds: consumer (KIP-848), share and streams groups.

Only their ids and members are read:

    kind of record          key's body                     meaning
    3, 11, 17               string group                   a consumer, share, streams group exists
    5, 10, 19               string group, string member    the group has this member
    all others from 3 on    string group, …                ignored

Source: Kafka's GroupMetadataManager.replay, CoordinatorRecordType; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers

_GROUP_KINDS: Final = {3: GroupType.CONSUMER, 11: GroupType.SHARE, 17: GroupType.STREAMS}
_MEMBER_KINDS: Final = {5: GroupType.CONSUMER, 10: GroupType.SHARE, 19: GroupType.STREAMS}
_LENGTH: Final = Struct(">h")


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

    def is_subscribed_to(self, topic: str) -> bool:
        """Return False: callers have refused if there are members."""
        del topic
        return False

    def admit_commit(self, body: Any, timers: Timers, now: Moment) -> None:
        """Refuse all commits except an administrator's to a group without members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND for a share group, UNKNOWN_MEMBER_ID.
        """
        del timers, now
        self._check_has_offsets()
        if self.members or body.generation_id_or_member_epoch >= 0:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_transactional_commit(self, body: Any) -> None:
        """Refuse a member's commit; one without a member is allowed, as in Kafka (KIP-447).

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND for a share group, UNKNOWN_MEMBER_ID.
        """
        self._check_has_offsets()
        names_somebody = body.member_id or body.group_instance_id is not None
        if body.generation_id_or_member_epoch >= 0 or (names_somebody and self.members):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

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


def replay(groups: dict[str, Group], kind: int, key: bytes, value: bytes | None) -> Group | None:
    """Apply a record of a kind from 3 on; return the group of another kind that it replaces.

    Raises:
        MalformedFrameError: The key is malformed.
    """
    of_members = _MEMBER_KINDS.get(kind)
    group_type = of_members or _GROUP_KINDS.get(kind)
    if group_type is None:
        return None
    group_id, position = _read_string(key, 2)
    member_id = None if of_members is None else _read_string(key, position)[0]
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


def _read_string(key: bytes, position: int) -> tuple[str, int]:
    try:
        (length,) = _LENGTH.unpack_from(key, position)
        start = position + _LENGTH.size
        end = start + length
        if length < 0 or end > len(key):
            raise MalformedFrameError("a coordinator record's key ends too early")
        return key[start:end].decode(), end
    except (struct_error, UnicodeDecodeError) as error:
        raise MalformedFrameError(f"a coordinator record's key: {error}") from None
