"""The common interface of all kinds of groups.

A shard holds groups of any kind by id. Operations of one kind (joining, heartbeats) return Kafka's
error for other kinds:

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
    """The kinds with their names in ListGroups (KIP-848, KIP-932, KIP-1071)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class OffsetExpiry(NamedTuple):
    """The beginning of the retention of committed offsets, in wall time."""

    # None: each offset's commit.
    since_ms: int | None = None


class Group(Protocol):
    """A group of any kind."""

    @property
    def group_id(self) -> str:
        """The group's id, unique among all kinds."""
        ...

    @property
    def group_type(self) -> GroupType:
        """The group's kind, which never changes."""
        ...

    @property
    def listed_protocol_type(self) -> str:
        """Protocol type for ListGroups; empty if unknown."""
        ...

    @property
    def state_name(self) -> str:
        """State for ListGroups."""
        ...

    @property
    def offset_expiry(self) -> OffsetExpiry | None:
        """Expiry of offsets that no member reads; None: never, nor does the group expire."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, so that it may be removed without offsets."""
        ...

    def is_subscribed_to(self, topic: str, /) -> bool:
        """Return whether members read a topic, as far as known."""
        ...

    def admit_commit(self, body: Any, timers: Timers, now: Moment, /) -> None:
        """Refuse a commit by a client that does not own the partitions; else extend its session.

        Raises:
            KafkaError: The error for every partition of the OffsetCommit response.
        """
        ...

    def check_transactional_commit(self, body: Any, /) -> None:
        """Refuse a transactional commit by a client that does not own the partitions.

        Raises:
            KafkaError: The error for every partition of the TxnOffsetCommit response.
        """
        ...

    def check_offset_delete(self) -> None:
        """Refuse to delete offsets.

        Raises:
            KafkaError: The error of the OffsetDelete response.
        """
        ...

    def check_delete(self) -> None:
        """Refuse to delete the group.

        Raises:
            KafkaError: The group's error in the DeleteGroups response.
        """
        ...

    def cancel_timers(self, timers: Timers, /) -> None:
        """Cancel all timers of a removed group."""
        ...

    def answer_unloaded(self, outcome: Outcome, /) -> None:
        """Add NOT_COORDINATOR responses for all waiters."""
        ...

    def check(self) -> None:
        """Assert the group's invariants."""
        ...
