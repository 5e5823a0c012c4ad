"""Timers of classic groups: soft events by key.

    SessionExpiry    no heartbeat from a member, or no join from a pending one, in time
    InitialDelay     group.initial.rebalance.delay.ms is over, again if members kept coming
    JoinTimeout      the longest rebalance timeout of the members is over
    SyncTimeout      likewise, for SyncGroup after the join phase

rebalance.py handles them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_member import Member
    from wirebroker.coordinator.outcome import Moment, Timers


class SessionExpiry(NamedTuple):
    """The end of a member's session; its own key."""

    group_id: str
    member_id: str


class InitialDelay(NamedTuple):
    """The end of a new group's delay, extendable by `remaining_ms`."""

    group_id: str
    delay_ms: int
    remaining_ms: int


class JoinTimeout(NamedTuple):
    """The end of the members' time to rejoin."""

    group_id: str


class SyncTimeout(NamedTuple):
    """The end of the members' time for SyncGroup."""

    group_id: str
    generation: int


# Three parts, unlike the key of a session.
PhaseKey = tuple[str, str, None]


def join_key(group_id: str) -> PhaseKey:
    """Return the key of InitialDelay and JoinTimeout."""
    return group_id, "join", None


def sync_key(group_id: str) -> PhaseKey:
    """Return the key of SyncTimeout."""
    return group_id, "sync", None


def expect_heartbeat(
    timers: Timers, group_id: str, member: Member, now: Moment, timeout_ms: int | None = None
) -> None:
    """Restart a member's session, with its own timeout by default."""
    wait_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    event = SessionExpiry(group_id, member.member_id)
    timers.set(event, now.monotonic_ms + wait_ms, event)
