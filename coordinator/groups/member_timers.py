"""Timers of the members of modern groups: soft events by key.

Each kind of group has its own events, and handles them in its own module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.coordinator.outcome import Moment, Timers


class MemberEvent(Protocol):
    """An event that concerns a member, a value."""

    @property
    def group_id(self) -> str:
        """The member's group."""
        ...

    @property
    def member_id(self) -> str:
        """The member."""
        ...


def _session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return group_id, member_id, "session"


def _revocation_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return group_id, member_id, "revocation"


def expect_heartbeat(timers: Timers, event: MemberEvent, timeout_ms: int, now: Moment) -> None:
    """Expect the member's next heartbeat within `timeout_ms`; an earlier timer is replaced."""
    key = _session_key(event.group_id, event.member_id)
    timers.set(key, now.monotonic_ms + timeout_ms, event)


def cancel_session(timers: Timers, group_id: str, member_id: str) -> None:
    """Stop waiting for a member's heartbeats."""
    timers.cancel(_session_key(group_id, member_id))


def expect_revocation(timers: Timers, event: MemberEvent, timeout_ms: int, now: Moment) -> None:
    """Expect that a member gives up what it has to within `timeout_ms`."""
    key = _revocation_key(event.group_id, event.member_id)
    timers.set(key, now.monotonic_ms + timeout_ms, event)


def cancel_revocation(timers: Timers, group_id: str, member_id: str) -> None:
    """Stop waiting for a revocation."""
    timers.cancel(_revocation_key(group_id, member_id))
