"""Timers of consumer groups: soft events by key.

    ConsumerSession      no heartbeat from a member in time
    ConsumerRevocation   a member has not given up partitions within its rebalance timeout
    ClassicRejoin        a member of the classic protocol has not rejoined a rebalance in time
    ClassicSync          likewise, for SyncGroup

consumer_fencing.py handles them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.groups.member_timers import (
    cancel_revocation,
    cancel_session,
    expect_heartbeat,
)

if TYPE_CHECKING:
    from wirebroker.coordinator.outcome import Moment, Timers


class ConsumerSession(NamedTuple):
    """The end of a member's session."""

    group_id: str
    member_id: str


class ClassicRejoin(NamedTuple):
    """The end of a classic member's time to rejoin."""

    group_id: str
    member_id: str


class ClassicSync(NamedTuple):
    """The end of a classic member's time for SyncGroup."""

    group_id: str
    member_id: str


class ConsumerRevocation(NamedTuple):
    """The end of a member's time to give up partitions in an epoch."""

    group_id: str
    member_id: str
    epoch: int


_Key = tuple[str, str, str]


def _rejoin_key(group_id: str, member_id: str) -> _Key:
    return group_id, member_id, "rejoin"


def _sync_key(group_id: str, member_id: str) -> _Key:
    return group_id, member_id, "sync"


def restart_session(
    timers: Timers, group_id: str, member_id: str, timeout_ms: int, now: Moment
) -> None:
    """Expect the member's next heartbeat within `timeout_ms`."""
    expect_heartbeat(timers, ConsumerSession(group_id, member_id), timeout_ms, now)


def expect_rejoin(
    timers: Timers, group_id: str, member_id: str, timeout_ms: int, now: Moment
) -> None:
    """Start the timer for a member's JoinGroup, unless it is running."""
    key = _rejoin_key(group_id, member_id)
    if key not in timers:
        timers.set(key, now.monotonic_ms + timeout_ms, ClassicRejoin(group_id, member_id))


def cancel_rejoin(timers: Timers, group_id: str, member_id: str) -> None:
    """Stop waiting for a JoinGroup."""
    timers.cancel(_rejoin_key(group_id, member_id))


def expect_sync(
    timers: Timers, group_id: str, member_id: str, timeout_ms: int, now: Moment
) -> None:
    """Expect a member's SyncGroup within `timeout_ms`."""
    event = ClassicSync(group_id, member_id)
    timers.set(_sync_key(group_id, member_id), now.monotonic_ms + timeout_ms, event)


def cancel_sync(timers: Timers, group_id: str, member_id: str) -> None:
    """Stop waiting for a SyncGroup."""
    timers.cancel(_sync_key(group_id, member_id))


def cancel_member_timers(timers: Timers, group_id: str, member_id: str) -> None:
    """Cancel all timers of a member."""
    cancel_session(timers, group_id, member_id)
    cancel_revocation(timers, group_id, member_id)
    cancel_rejoin(timers, group_id, member_id)
    cancel_sync(timers, group_id, member_id)
