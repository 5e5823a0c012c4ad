"""What a replica of the metadata log measures: elections, commits, records.

Source: Kafka's KafkaRaftMetrics.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from wirebroker.base.recent_times import PERIOD_MS, RecentTimes
from wirebroker.coordinator.quotas.sampled_rate import SampledRate
from wirebroker.coordinator.raft.protocol.messages import NO_LEADER
from wirebroker.coordinator.raft.states.epoch_states import (
    CandidateState,
    FollowerState,
    ProspectiveState,
    UnattachedState,
)
from wirebroker.coordinator.raft.states.leader_state import LeaderState, PendingAddition
from wirebroker.quorum.raft.raft_figures import RaftFigures

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.states.replica_core import RaftState, ReplicaCore

# Changes whose commit is timed at the same time; others are not.
_MOST_TIMED: Final = 1_000
_NOT_VOTED: Final = -1
_UNKNOWN: Final = -1


class RaftMeters:
    """The measured times and rates of one replica; times are those of its machine."""

    __slots__ = ("_appended", "_candidacy", "_commits", "_elections", "_fetched", "_timed")

    def __init__(self) -> None:
        self._commits = RecentTimes()
        self._elections = RecentTimes()
        self._fetched = SampledRate(samples=2, sample_ms=PERIOD_MS)
        self._appended = SampledRate(samples=2, sample_ms=PERIOD_MS)
        # The ends of appended changes that are not committed yet, and when they were appended.
        self._timed: deque[tuple[int, int]] = deque()
        # The state in which this replica asks for votes, and when it began.
        self._candidacy: tuple[RaftState, int] | None = None

    def note_state(self, state: RaftState, now_ms: int) -> None:
        """Time elections: from the last time that this replica asked for votes to a leader."""
        candidacy = self._candidacy
        if isinstance(state, ProspectiveState | CandidateState):
            if candidacy is None or candidacy[0] is not state:
                self._candidacy = state, now_ms
        elif candidacy is not None and isinstance(state, LeaderState | FollowerState):
            self._elections.add(now_ms - candidacy[1], now_ms)
            self._candidacy = None

    def note_append(self, count: int, end_offset: int, now_ms: int, *, is_leader: bool) -> None:
        """Count appended records."""
        (self._appended if is_leader else self._fetched).count(count, now_ms)
        if is_leader and len(self._timed) < _MOST_TIMED:
            self._timed.append((end_offset, now_ms))

    def note_commit(self, high_watermark: int, now_ms: int) -> None:
        """Time commits."""
        while self._timed and self._timed[0][0] <= high_watermark:
            self._commits.add(now_ms - self._timed.popleft()[1], now_ms)

    def note_new_epoch(self) -> None:
        """Forget the changes that were not committed."""
        self._timed.clear()

    def figures(self, core: ReplicaCore, now_ms: int) -> RaftFigures:
        """Return the figures of this moment."""
        state, voters = core.state, core.history.last_voters
        leader = state if isinstance(state, LeaderState) else None
        vote = state.leader_id if leader is not None else _voted_id(state)
        name = core.identity.listener_name
        return RaftFigures(
            state=state_name(core),
            leader_id=NO_LEADER if state.leader_id is None else state.leader_id,
            vote=_NOT_VOTED if vote is None else vote,
            epoch=state.epoch,
            high_watermark=_UNKNOWN if core.high_watermark is None else core.high_watermark,
            log_end_offset=core.log.end_offset,
            log_end_epoch=core.log.last_epoch,
            voters=len(voters),
            observers=None if leader is None else leader.observer_count(now_ms),
            has_uncommitted_voters=None if leader is None else int(_has_uncommitted(leader)),
            unknown_voters=sum(
                voters.destination(voter_id, name) is None
                for voter_id in voters.ids - {core.key.replica_id}
            ),
            commit_average_ms=self._commits.average_ms(now_ms),
            commit_highest_ms=self._commits.highest_ms(now_ms),
            election_average_ms=self._elections.average_ms(now_ms),
            election_highest_ms=self._elections.highest_ms(now_ms),
            fetched_per_s=self._fetched.per_second(now_ms),
            appended_per_s=self._appended.per_second(now_ms),
        )


def _voted_id(state: RaftState) -> int | None:
    return None if state.voted is None else state.voted.replica_id


def _has_uncommitted(leader: LeaderState) -> bool:
    pending = leader.pending
    is_only_asked = isinstance(pending, PendingAddition) and pending.end_offset is None
    return pending is not None and not is_only_asked


def state_name(core: ReplicaCore) -> str:
    """Return Kafka's name of the state in metrics."""
    state = core.state
    if isinstance(state, FollowerState):
        return "follower" if core.is_voter else "observer"
    if isinstance(state, LeaderState | CandidateState):
        return state.name.lower()
    name = "prospective" if isinstance(state, ProspectiveState) else "unattached"
    has_voted = isinstance(state, ProspectiveState | UnattachedState) and state.voted is not None
    return f"{name}-voted" if has_voted else name
