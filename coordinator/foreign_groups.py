"""Groups of the kinds that are not served here: consumer (KIP-848), share and streams groups.

Apache Kafka may have left them in `__consumer_offsets`. Their records stay as they are: they are
kept by compaction, no tombstone is ever written for them, and their committed offsets do not
expire. What has to be known is which ids they take and whether anybody is in them:

    kind of record          key's body                     says
    3, 11, 17               string group                   a consumer, share, streams group exists
    5, 10, 19               string group, string member    the group has this member
    all others from 3 on    string group, …                nothing that matters here

Nobody can join or leave them here, so members that a crash of their broker left stay.

Source: Kafka's GroupMetadataManager.replay, CoordinatorRecordType; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.coordinator.classic_group import GroupState

CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

_GROUP_KINDS: Final = {3: CONSUMER, 11: SHARE, 17: STREAMS}
_MEMBER_KINDS: Final = {5: CONSUMER, 10: SHARE, 19: STREAMS}
_LENGTH: Final = Struct(">h")


class ForeignGroup:
    """One such group.

    Attributes:
        group_id: Its id.
        group_type: consumer, share or streams.
        members: The ids of its members.
    """

    __slots__ = ("group_id", "group_type", "members")

    def __init__(self, group_id: str, group_type: str) -> None:
        self.group_id = group_id
        self.group_type = group_type
        self.members: set[str] = set()

    @property
    def is_convertible(self) -> bool:
        """Tell whether a classic member may join, which makes it a classic group."""
        return self.group_type == CONSUMER and not self.members

    @property
    def state(self) -> str:
        """Return its state as far as it is known: Kafka has finer ones."""
        return GroupState.STABLE if self.members else GroupState.EMPTY


class ForeignGroups:
    """Those of one partition, by id."""

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        self.by_id: dict[str, ForeignGroup] = {}

    def replay(self, kind: int, key: bytes, value: bytes | None) -> str | None:
        """Take over a record of a kind from 3 on.

        Kinds that Kafka 4.3 does not know either are passed over, as it does.

        Returns:
            The id of the group that there is now, if the record says that.

        Raises:
            MalformedFrameError: The key cannot be read.
        """
        of_members = _MEMBER_KINDS.get(kind)
        group_type = of_members or _GROUP_KINDS.get(kind)
        if group_type is None:
            return None
        group_id, position = _read_string(key, 2)
        if value is None and of_members is None:
            self.remove(group_id)
            return None
        member_id = None if of_members is None else _read_string(key, position)[0]
        group = self.by_id.get(group_id)
        if value is None:
            if group is not None:
                group.members.discard(member_id or "")
            return None
        # Compaction moves the group's record behind those of its members.
        if group is None or group.group_type != group_type:
            group = self.by_id[group_id] = ForeignGroup(group_id, group_type)
        if member_id is not None:
            group.members.add(member_id)
        return group_id

    def remove(self, group_id: str) -> None:
        """Forget a group in whose place there is a classic one."""
        self.by_id.pop(group_id, None)


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
