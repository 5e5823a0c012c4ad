"""One member of a classic group: what it said when it joined, and who waits on its behalf.

Durable is what the group's record has of it (classic_group.py); the other protocols that it knows
and who waits are soft.

Source: Kafka's ClassicGroupMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.coordinator.outcome import Token

# Name and metadata of each protocol that a member knows, in its order of preference.
Protocols = tuple[tuple[str, bytes], ...]


class Member:
    """One member of a group."""

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
        # Of these the record keeps the chosen one: after a load the others are not known.
        self.protocols = protocols
        self.assignment = assignment
        # Soft: who waits for an answer on the member's behalf.
        self.awaiting_join: Token | None = None
        self.awaiting_sync: Token | None = None
        # Soft: it has not been through a rebalance yet, so it expires even while it waits.
        self.is_new = False

    def metadata(self, protocol: str) -> bytes:
        """Return what the member said for a protocol that it knows."""
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def vote(self, candidates: set[str]) -> str:
        """Return the candidate that the member likes best."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def is_excused(self) -> bool:
        """Tell whether the member need not send heartbeats: it waits for us."""
        waits = self.awaiting_join is not None or self.awaiting_sync is not None
        return waits and not self.is_new


def protocols_of(requested: Iterable[Any]) -> Protocols:
    """Return the protocols of a JoinGroup request; the last metadata of a name counts."""
    return tuple({each.name: each.metadata for each in requested}.items())


def assigned(assignments: Sequence[Any]) -> dict[str, bytes]:
    """Return what a leader's SyncGroup assigns to whom."""
    return {each.member_id: each.assignment for each in assignments}
