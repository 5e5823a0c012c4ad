"""A member of a classic group: its last JoinGroup request, and its waiters.

Source: Kafka's ClassicGroupMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.coordinator.outcome import Token

# Name and metadata, in the member's order of preference.
Protocols = tuple[tuple[str, bytes], ...]


class Member:
    """A member of a group."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Token | None = None
        self.awaiting_sync: Token | None = None
        # No rebalance yet, so it expires even while it waits.
        self.is_new = False

    def metadata(self, protocol: str) -> bytes:
        """Return the metadata for a supported protocol."""
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def vote(self, candidates: set[str]) -> str:
        """Return the candidate that the member prefers."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def is_excused(self) -> bool:
        """Whether the member waits, and so need not send heartbeats."""
        waits = self.awaiting_join is not None or self.awaiting_sync is not None
        return waits and not self.is_new


def protocols_of(requested: Iterable[Any]) -> Protocols:
    """Return the protocols of a request; the last metadata of a name counts."""
    return tuple({protocol.name: protocol.metadata for protocol in requested}.items())


def assigned(assignments: Sequence[Any]) -> dict[str, bytes]:
    """Return the assignments of a request, by member id."""
    return {assignment.member_id: assignment.assignment for assignment in assignments}
