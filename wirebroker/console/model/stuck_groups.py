"""Why a group makes no progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.text import counted

if TYPE_CHECKING:
    from wirebroker.console.model.cluster_state import WatchedGroup

# States between assignments, of all protocols.
_REBALANCING: Final = frozenset(
    {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)
_EMPTY: Final = "Empty"
_NOT_READY: Final = "NotReady"
# How long a rebalance may last, and committed offsets may be the same while records wait.
_REBALANCE_MS: Final = 30_000
_PAUSE_MS: Final = 60_000


class Stuck(NamedTuple):
    """Why a group makes no progress, and what to do."""

    why: str
    next_step: str


def stuck_of(group: WatchedGroup, lag: int | None, now_ms: int) -> Stuck | None:
    """Return why a group makes no progress, or None if it does or has nothing to do."""
    if group.state in _REBALANCING and now_ms - group.state_since_ms >= _REBALANCE_MS:
        seconds = (now_ms - group.state_since_ms) // 1000
        return Stuck(
            f"it has been in {group.state} for {seconds} s: a member does not join, sync or give up"
            " its partitions",
            "read the logs of its members; one that is blocked longer than max.poll.interval.ms is"
            " removed after that time",
        )
    if group.state == _NOT_READY:
        return Stuck(
            "a topic of its topology is missing or has another number of partitions",
            "create its topics, or start the application that creates them",
        )
    if not lag:
        return None
    if group.state == _EMPTY:
        return Stuck(
            f"it has no members, and {counted(lag, 'record')} wait",
            "start its consumers, or delete it if it is no longer needed",
        )
    still_ms = now_ms - group.progressed_ms
    if group.progress is not None and still_ms >= _PAUSE_MS:
        return Stuck(
            f"it has members and {counted(lag, 'record')} to read, but has committed no offset for"
            f" {still_ms // 1000} s",
            "read the logs of its members: processing fails or blocks at the first record that is"
            " not committed, or an open transaction holds back read_committed consumers",
        )
    return None
