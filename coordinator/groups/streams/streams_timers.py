"""Timers of streams groups: soft events by key.

    TaskSession        no heartbeat from a member in time
    TaskRevocation     a member has not given up tasks within its rebalance timeout
    InitialRebalance   a group that was empty has waited for further members

streams_fencing.py and due_assignment.py handle them.
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


class TaskSession(NamedTuple):
    """The end of a member's session."""

    group_id: str
    member_id: str


class TaskRevocation(NamedTuple):
    """The end of a member's time to give up tasks in an epoch."""

    group_id: str
    member_id: str
    epoch: int


class InitialRebalance(NamedTuple):
    """The end of the delay before a group's first assignment."""

    group_id: str


def restart_session(
    timers: Timers, group_id: str, member_id: str, timeout_ms: int, now: Moment
) -> None:
    """Expect the member's next heartbeat within `timeout_ms`."""
    expect_heartbeat(timers, TaskSession(group_id, member_id), timeout_ms, now)


def cancel_member_timers(timers: Timers, group_id: str, member_id: str) -> None:
    """Cancel all timers of a member."""
    cancel_session(timers, group_id, member_id)
    cancel_revocation(timers, group_id, member_id)


def expect_initial_rebalance(timers: Timers, group_id: str, delay_ms: int, now: Moment) -> None:
    """Start the delay before a group's first assignment, unless it runs."""
    if not is_rebalance_delayed(timers, group_id):
        event = InitialRebalance(group_id)
        timers.set(event, now.monotonic_ms + delay_ms, event)


def is_rebalance_delayed(timers: Timers, group_id: str) -> bool:
    """Return whether that delay runs."""
    return InitialRebalance(group_id) in timers


def cancel_initial_rebalance(timers: Timers, group_id: str) -> None:
    """End that delay."""
    timers.cancel(InitialRebalance(group_id))
