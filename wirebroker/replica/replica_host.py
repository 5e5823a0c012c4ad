"""What all replicas of one node share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.request.owed_answer import DueAnswers

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.replica.group_commit import GroupCommit


def _anybody(replica: int, broker_epoch: int) -> bool:
    """Let everybody be in an ISR."""
    del replica, broker_epoch
    return True


class ReplicaHost:
    """The node that replicas live on.

    Attributes:
        node_id: Its id.
        commits: Syncs what must be on the disk before it counts.
        clock: Its clock.
        due_answers: Sends what may leave by now.
        most_lag_ms: How long a follower may lag behind (replica.lag.time.max.ms).
        may_join: Whether a node id of a broker epoch may be in an ISR: it is registered so,
            unfenced and not about to stop.
    """

    __slots__ = ("clock", "commits", "due_answers", "may_join", "most_lag_ms", "node_id")

    def __init__(
        self,
        node_id: int,
        *,
        commits: GroupCommit,
        clock: Clock,
        most_lag_ms: int,
        may_join: Callable[[int, int], bool] = _anybody,
    ) -> None:
        self.node_id = node_id
        self.commits = commits
        self.clock = clock
        self.most_lag_ms = most_lag_ms
        self.may_join = may_join
        self.due_answers = DueAnswers()

    def monotonic_ms(self) -> int:
        """Return the time by which followers' progress is told."""
        return int(self.clock.monotonic() * 1000)
