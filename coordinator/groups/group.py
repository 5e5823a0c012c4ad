"""The common interface of all kinds of groups; README.md lists Kafka's errors for other kinds.

Source: Kafka's Group.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers


class GroupType(StrEnum):
    """The kinds with their names in ListGroups (KIP-848, KIP-932, KIP-1071)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class OffsetExpiry(NamedTuple):
    """The beginning of the retention of committed offsets."""

    # Wall time; None: each offset's commit.
    since_ms: int | None = None


class CommitRequest(Protocol):
    """An OffsetCommit or TxnOffsetCommit request, limited to existing partitions."""

    @property
    def body(self) -> Any:
        """The decoded request."""
        ...

    @property
    def version(self) -> int:
        """Its version."""
        ...

    @property
    def topics(self) -> Sequence[tuple[str, bytes, Sequence[Any]]]:
        """Name, id and requested partitions of each topic."""
        ...


class Group(Protocol):
    """A group of any kind."""

    @property
    def group_id(self) -> str:
        """Id, unique among all kinds."""
        ...

    @property
    def group_type(self) -> GroupType:
        """Kind, which never changes."""
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
        """Expiry of offsets that no member reads; None: neither they nor the group expire."""
        ...

    @property
    def members(self) -> Sized:
        """The members, by id."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, so that it may be removed once it has no offsets."""
        ...

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that the members joined with."""
        ...

    def member_bytes(self, member_id: str, instance_id: str | None, /) -> int:
        """Return the bytes of the metadata that a member joined with; 0 without such a member."""
        ...

    def is_subscribed_to(self, topic: str, /) -> bool:
        """Return whether members read a topic, as far as known."""
        ...

    def admit_commit(self, request: CommitRequest, timers: Timers, now: Moment, /) -> None:
        """Refuse a commit from a client that is not a current member; else extend its session.

        An empty group accepts commits without a generation, such as those of administrators.

        Raises:
            KafkaError: The error for every partition of the response.
        """
        ...

    def check_transactional_commit(self, request: CommitRequest, /) -> None:
        """Refuse a transactional commit if it names a member or generation that is not current.

        Raises:
            KafkaError: The error for every partition of the response.
        """
        ...

    def check_fetch(self, group: Any, /) -> None:
        """Refuse an OffsetFetch of this group with a member or epoch that is not current.

        Raises:
            KafkaError: The error of the group in the response.
        """
        ...

    def check_offset_delete(self) -> None:
        """Check that offsets may be deleted.

        Raises:
            KafkaError: They may not.
        """
        ...

    def check_delete(self) -> None:
        """Check that the group may be deleted.

        Raises:
            KafkaError: It may not.
        """
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, the last one the group itself."""
        ...

    def cancel_timers(self, timers: Timers, /) -> None:
        """Cancel all timers."""
        ...

    def answer_unloaded(self, outcome: Outcome, /) -> None:
        """Add NOT_COORDINATOR responses for all waiters."""
        ...

    def check(self) -> None:
        """Assert the invariants."""
        ...
