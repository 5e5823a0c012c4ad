"""State that all replicas of one node share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wirebroker.request.deferred_response import DeferredResponses

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.replica.deadlines import Deadlines


class Commits(Protocol):
    """What replicas use of GroupCommit."""

    @property
    def deadlines(self) -> Deadlines:
        """Deadlines of requests that wait for a sync."""
        ...

    @property
    def is_always(self) -> bool:
        """Whether each append is synced before its response."""
        ...

    def add(self, partition: Any, /) -> None:
        """Sync a replica's log with the next group."""
        ...


def _always(replica: int, broker_epoch: int) -> bool:
    del replica, broker_epoch
    return True


class ReplicaContext:
    """The node of the replicas.

    Attributes:
        most_lag_ms: A follower's allowed lag (replica.lag.time.max.ms).
        may_join: Whether a node id with a broker epoch may be in an ISR: registered, unfenced and
            not shutting down.
    """

    __slots__ = ("clock", "commits", "due_answers", "may_join", "most_lag_ms", "node_id")

    def __init__(
        self,
        node_id: int,
        *,
        commits: Commits,
        clock: Clock,
        most_lag_ms: int,
        may_join: Callable[[int, int], bool] = _always,
    ) -> None:
        self.node_id = node_id
        self.commits = commits
        self.clock = clock
        self.most_lag_ms = most_lag_ms
        self.may_join = may_join
        self.due_answers = DeferredResponses()

    def monotonic_ms(self) -> int:
        """Return the time by which followers' progress is measured."""
        return int(self.clock.monotonic() * 1000)
