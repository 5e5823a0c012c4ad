"""The timer of share groups: the sessions of members, soft events by key.

share_fencing.py handles them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.groups.member_timers import expect_heartbeat

if TYPE_CHECKING:
    from wirebroker.coordinator.outcome import Moment, Timers


class ShareSessionExpiry(NamedTuple):
    """The end of a member's session."""

    group_id: str
    member_id: str


def restart_session(
    timers: Timers, group_id: str, member_id: str, timeout_ms: int, now: Moment
) -> None:
    """Expect the member's next heartbeat within `timeout_ms`."""
    expect_heartbeat(timers, ShareSessionExpiry(group_id, member_id), timeout_ms, now)
