"""The timers of classic groups: events by key, all of them soft.

    SessionExpiry    a member sent no heartbeat in time, or a pending one did not come back
    InitialDelay     group.initial.rebalance.delay.ms is over, again if members kept coming
    JoinTimeout      the longest rebalance timeout of the members is over
    SyncTimeout      likewise, for SyncGroup after the join phase

What comes of them: rebalance.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_member import Member
    from wirebroker.coordinator.outcome import Moment, Timers


class SessionExpiry(NamedTuple):
    """A member, or a pending one, has been silent for its session timeout; its own key."""

    group_id: str
    member_id: str


class InitialDelay(NamedTuple):
    """A new group has waited `delay_ms` for more members and could wait `remaining_ms` more."""

    group_id: str
    delay_ms: int
    remaining_ms: int


class JoinTimeout(NamedTuple):
    """Members had their rebalance timeout to rejoin."""

    group_id: str


class SyncTimeout(NamedTuple):
    """Members had their rebalance timeout to send SyncGroup."""

    group_id: str
    generation: int


# Of three parts, so that no session, of whatever ids, has the same key.
PhaseKey = tuple[str, str, None]


def join_key(group_id: str) -> PhaseKey:
    """Return the key of what ends a join phase: InitialDelay or JoinTimeout."""
    return group_id, "join", None


def sync_key(group_id: str) -> PhaseKey:
    """Return the key of the SyncTimeout."""
    return group_id, "sync", None


def expect_heartbeat(
    timers: Timers, group_id: str, member: Member, moment: Moment, timeout_ms: int | None = None
) -> None:
    """Give a member its session timeout (or another time) from now on."""
    wait_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    event = SessionExpiry(group_id, member.member_id)
    timers.set(event, moment.monotonic_ms + wait_ms, event)
