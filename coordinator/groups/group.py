"""What every kind of group is to its shard: an id, a type, members or none, offsets or none.

The shard holds groups by id, of any kind. What concerns all of them (commits, expiry, listing,
deletion) asks the group through this protocol; what is of one kind (joining, heartbeats) asks the
shard for a group of that kind and says Kafka's error if there is another:

    request                          for a group of another kind
    JoinGroup                        INCONSISTENT_GROUP_PROTOCOL
    SyncGroup, Heartbeat, LeaveGroup UNKNOWN_MEMBER_ID
    DescribeGroups                   GROUP_ID_NOT_FOUND from v6 on, Dead before

Source: Kafka's Group.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers


class GroupType(StrEnum):
    """The kinds under their names in ListGroups (KIP-848, KIP-932, KIP-1071)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class OffsetExpiry(NamedTuple):
    """From when on the age of committed offsets counts, on the wall clock."""

    # None: from each one's commit.
    since_ms: int | None = None


class Group(Protocol):
    """One group."""

    @property
    def group_id(self) -> str:
        """Its id, which no other group of any kind has."""
        ...

    @property
    def group_type(self) -> GroupType:
        """Its kind, which never changes: another kind is another group."""
        ...

    @property
    def listed_protocol_type(self) -> str:
        """What ListGroups says its members speak; empty if that is not known."""
        ...

    @property
    def state_name(self) -> str:
        """Its state as ListGroups says it."""
        ...

    @property
    def offset_expiry(self) -> OffsetExpiry | None:
        """How the offsets expire that no member reads; None: they don't, nor does the group."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and may go when it has no offsets either."""
        ...

    def is_subscribed_to(self, topic: str, /) -> bool:
        """Tell whether members read a topic, as far as that is known."""
        ...

    def admit_commit(self, body: Any, timers: Timers, moment: Moment, /) -> None:
        """Refuse a commit by somebody who doesn't own what he commits; who does was heard of.

        Raises:
            KafkaError: What every partition of the OffsetCommit response says.
        """
        ...

    def check_transactional_commit(self, body: Any, /) -> None:
        """Refuse a commit in a transaction by somebody who doesn't own what he commits.

        Raises:
            KafkaError: What every partition of the TxnOffsetCommit response says.
        """
        ...

    def check_offset_delete(self) -> None:
        """Refuse to delete any offset.

        Raises:
            KafkaError: What the OffsetDelete response says.
        """
        ...

    def check_delete(self) -> None:
        """Refuse to delete the group.

        Raises:
            KafkaError: What DeleteGroups says of it.
        """
        ...

    def cancel_timers(self, timers: Timers, /) -> None:
        """Forget every timer of a group that goes."""
        ...

    def answer_unloaded(self, outcome: Outcome, /) -> None:
        """Answer all who wait: somebody else is their coordinator now, or nobody."""
        ...

    def check(self) -> None:
        """Assert the group's laws."""
        ...
