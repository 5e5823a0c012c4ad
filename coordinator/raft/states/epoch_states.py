"""The states of a replica in an epoch, except the leader's.

| state | meaning | leaves it when |
| --- | --- | --- |
| UnattachedState | knows no leader that it can reach | finds one; its election timeout passes |
| ProspectiveState | asks if it would win an election | a majority would vote for it, or will not |
| CandidateState | asks for votes in a new epoch | a majority voted for it; its timeout passes |
| LeaderState | appends (`leader_state.py`) | a majority is silent; it stops; a later epoch |
| FollowerState | copies the leader's log | a voter's fetches get no response in time |
| ResignedState | led the epoch, and stopped | its election timeout passes |

An observer is a replica in UnattachedState or FollowerState that is not among the voters.

Every state gives the leader, the vote and whether it would vote for another replica. Deadlines are
of the machine's clock.

Source: Kafka's classes of the same names; KIP-996 for ProspectiveState.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.log_point import LogPoint
    from wirebroker.coordinator.raft.model.replica_key import Endpoints, ReplicaKey
    from wirebroker.coordinator.raft.model.vote_tally import VoteTally

# Later than any time of a clock in milliseconds.
NEVER: Final = 1 << 62


def _grants_without_leading(
    state: UnattachedState | ProspectiveState,
    candidate: ReplicaKey,
    *,
    is_up_to_date: bool,
    is_pre_vote: bool,
) -> bool:
    if is_pre_vote:
        return is_up_to_date
    if state.voted is not None:
        return state.voted.matches(candidate)
    return state.leader_id is None and is_up_to_date


@dataclass(slots=True)
class UnattachedState:
    """Knows no leader that it can reach."""

    name: ClassVar[str] = "Unattached"
    endpoints: ClassVar[Endpoints] = ()

    epoch: int
    leader_id: int | None
    voted: ReplicaKey | None
    election_deadline_ms: int

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        """Return whether it would vote for another replica in this epoch."""
        return _grants_without_leading(
            self, candidate, is_up_to_date=is_up_to_date, is_pre_vote=is_pre_vote
        )


@dataclass(slots=True)
class ProspectiveState:
    """Asks for pre-votes; its epoch does not change by that (KIP-996)."""

    name: ClassVar[str] = "Prospective"

    epoch: int
    leader_id: int | None
    endpoints: Endpoints
    voted: ReplicaKey | None
    tally: VoteTally
    election_deadline_ms: int

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        """See UnattachedState."""
        return _grants_without_leading(
            self, candidate, is_up_to_date=is_up_to_date, is_pre_vote=is_pre_vote
        )


@dataclass(slots=True)
class CandidateState:
    """Voted for itself in a new epoch and asks for the others' votes."""

    name: ClassVar[str] = "Candidate"
    leader_id: ClassVar[None] = None
    endpoints: ClassVar[Endpoints] = ()

    epoch: int
    voted: ReplicaKey
    tally: VoteTally
    election_deadline_ms: int

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        """See UnattachedState; its only vote of the epoch is its own."""
        del candidate
        return is_pre_vote and is_up_to_date


@dataclass(slots=True)
class SnapshotDownload:
    """A snapshot that a follower copies from the leader; `position` counts the bytes received."""

    point: LogPoint
    position: int = 0


@dataclass(slots=True)
class FollowerState:
    """Copies the log of a leader.

    Attributes:
        has_fetched: Whether the leader has responded to it. If so, it denies pre-votes: the leader
            works.
        leader_high_watermark: The high watermark that the leader has reported; -1 if unknown.
        has_updated_leader: Whether the leader knows its listeners and versions (static voters).
    """

    name: ClassVar[str] = "Follower"

    epoch: int
    leader_id: int
    endpoints: Endpoints
    voted: ReplicaKey | None
    fetch_deadline_ms: int
    update_voter_deadline_ms: int
    has_fetched: bool = False
    leader_high_watermark: int = -1
    has_updated_leader: bool = False
    download: SnapshotDownload | None = None

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        """See UnattachedState."""
        del candidate
        return is_pre_vote and is_up_to_date and not self.has_fetched


@dataclass(slots=True)
class ResignedState:
    """Led this epoch; tells the voters so, and leads no more in it, also after a restart."""

    name: ClassVar[str] = "Resigned"
    voted: ClassVar[None] = None

    epoch: int
    leader_id: int
    endpoints: Endpoints
    unacknowledged: set[int]
    election_deadline_ms: int
    preferred: tuple[ReplicaKey, ...] = field(default=())

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        """See UnattachedState."""
        del candidate
        return is_pre_vote and is_up_to_date
