"""The timer of share groups: the sessions of members, soft events by key.

share_fencing.py handles them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.coordinator.outcome import Moment, Timers


class ShareSessionExpiry(NamedTuple):
    """The end of a member's session."""

    group_id: str
    member_id: str


def _key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return group_id, member_id, "session"


def restart_session(
    timers: Timers, group_id: str, member_id: str, timeout_ms: int, now: Moment
) -> None:
    """Expect the member's next heartbeat within `timeout_ms`."""
    event = ShareSessionExpiry(group_id, member_id)
    timers.set(_key(group_id, member_id), now.monotonic_ms + timeout_ms, event)


def cancel_session(timers: Timers, group_id: str, member_id: str) -> None:
    """Stop waiting for a member's heartbeats."""
    timers.cancel(_key(group_id, member_id))
