"""The leader of an epoch: the progress of voters and observers, and the high watermark.

    committed: on disk at a majority of the last voters, and at least one record of this epoch

A record of an earlier epoch that a majority has may still be lost (section 5.4.2 of the Raft
paper), so nothing counts as committed before the leader's first record, LeaderChange, is. The
leader itself counts only with what is on its disk, and only if it is a voter: a leader that removed
itself still commits that change.

Source: Kafka's LeaderState (KIP-595, KIP-642, KIP-853).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from wirebroker.coordinator.raft.model.replica_progress import ReplicaProgress
from wirebroker.coordinator.raft.states.epoch_states import NEVER

if TYPE_CHECKING:
    from wirebroker.codecs.records.control import Voter
    from wirebroker.coordinator.raft.model.replica_key import Endpoints, ReplicaKey
    from wirebroker.coordinator.raft.model.voter_set import VoterSet

_OBSERVER_FORGOTTEN_AFTER_MS: Final = 300_000
# An observer that has not fetched for an hour is not caught up.
_CAUGHT_UP_WITHIN_MS: Final = 3_600_000
# Beyond this, the longest silent one is dropped: a peer may invent directory ids.
_MAX_OBSERVERS: Final = 1_000


@dataclass(slots=True)
class PendingAddition:
    """A voter that is being added.

    Attributes:
        end_offset: The end of its record of voters; None until its versions are known.
        token: The request, if it has not been answered.
    """

    token: object | None
    key: ReplicaKey
    endpoints: Endpoints
    ack_when_committed: bool
    deadline_ms: int
    end_offset: int | None = None


@dataclass(slots=True)
class PendingRemoval:
    """A voter that is being removed; see PendingAddition."""

    token: object | None
    end_offset: int
    deadline_ms: int


class LeaderState:
    """A leader.

    Attributes:
        high_watermark: The end of the committed records; None until this epoch commits one.
        start_offset: The offset of the epoch's first record.
        respond_before: Waiting fetches from offsets before this one are to be answered.
        fetched_voters: The voters that have fetched since the quorum was last complete.
        pending: The change of voters in progress.
        volatile_voters: With kraft.version 0, the voters as they described themselves; they are
            written when kraft.version is raised.
    """

    __slots__ = (
        "begin_epoch_deadline_ms",
        "check_quorum_deadline_ms",
        "endpoints",
        "epoch",
        "fetched_voters",
        "granting",
        "high_watermark",
        "key",
        "leader_id",
        "log_end_offset",
        "observers",
        "pending",
        "resign_is_requested",
        "respond_before",
        "start_offset",
        "synced_offset",
        "volatile_voters",
        "voters",
    )

    name: ClassVar[str] = "Leader"
    voted: ClassVar[None] = None

    def __init__(
        self,
        own: Voter,
        key: ReplicaKey,
        *,
        epoch: int,
        voters: VoterSet,
        granting: list[int],
        start_offset: int,
        synced_offset: int,
        check_quorum_deadline_ms: int,
        now_ms: int,
    ) -> None:
        assert voters.is_voter(key), (key, voters)
        self.key = key
        self.leader_id = key.replica_id
        self.endpoints: Endpoints = own.endpoints
        self.epoch = epoch
        self.granting = granting
        self.start_offset = start_offset
        # The end of its log, and of what is on its disk.
        self.log_end_offset = start_offset
        self.synced_offset = synced_offset
        self.high_watermark: int | None = None
        self.voters = {voter.replica_id: ReplicaProgress(voter) for voter in voters.keys}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        self.fetched_voters: set[int] = set()
        self.check_quorum_deadline_ms = check_quorum_deadline_ms
        self.begin_epoch_deadline_ms = now_ms
        self.resign_is_requested = False
        self.respond_before = 0
        self.pending: PendingAddition | PendingRemoval | None = None
        self.volatile_voters: VoterSet | None = None

    @property
    def is_voter(self) -> bool:
        """Whether it is among the last voters."""
        voter = self.voters.get(self.leader_id)
        return voter is not None and voter.key.matches(self.key)

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        """See UnattachedState."""
        del candidate, is_up_to_date, is_pre_vote
        return False

    def set_voters(self, voters: VoterSet) -> None:
        """Continue with other voters; a removed one becomes an observer."""
        former = self.voters
        present: dict[int, ReplicaProgress] = {}
        for key in voters.keys:
            progress = former.get(key.replica_id)
            if progress is not None and progress.key.matches(key):
                progress.key = key
                del former[key.replica_id]
            else:
                progress = self.observers.pop(key, None) or ReplicaProgress(key)
            present[key.replica_id] = progress
        self.voters = present
        for progress in former.values():
            if not progress.key.matches(self.key):
                self.observers.setdefault(progress.key, progress)
        self.fetched_voters -= former.keys()

    def progress_of(self, key: ReplicaKey) -> ReplicaProgress | None:
        """Return what is known of a replica."""
        voter = self.voters.get(key.replica_id)
        return voter if voter is not None and voter.key.matches(key) else self.observers.get(key)

    def follower_fetched(self, key: ReplicaKey, end_offset: int, now_ms: int) -> bool:
        """Note that a replica has the log up to an offset on its disk; return whether it votes."""
        progress = self.progress_of(key)
        if progress is None:
            progress = self._observe(key)
        progress.fetched(end_offset, self.log_end_offset, now_ms)
        return progress is self.voters.get(key.replica_id)

    def voter_is_alive(self, key: ReplicaKey, deadline_ms: int) -> None:
        """Note a request of a voter; if a majority made some, wait for them until `deadline_ms`."""
        voter = self.voters.get(key.replica_id)
        if voter is not None and voter.key.matches(key):
            self.fetched_voters.add(key.replica_id)
        if len(self.fetched_voters) >= self._others_in_majority:
            self.fetched_voters.clear()
            self.check_quorum_deadline_ms = deadline_ms

    @property
    def quorum_deadline_ms(self) -> int:
        """When it must have heard from a majority; never if no other voter is needed for one."""
        return self.check_quorum_deadline_ms if self._others_in_majority else NEVER

    def advance(self) -> bool:
        """Commit what a majority has on disk; return whether that is more than before."""
        ends = sorted((self._end_of(voter) for voter in self.voters.values()), reverse=True)
        committed = ends[len(ends) // 2]
        if committed <= self.start_offset or committed <= (self.high_watermark or 0):
            return False
        self.high_watermark = committed
        return True

    def silent_voters(self, since_ms: int) -> list[ReplicaKey]:
        """Return the other voters that have not fetched since a time."""
        return [
            voter.key
            for voter in self.voters.values()
            if not voter.key.matches(self.key)
            and (voter.last_fetch_ms < 0 or voter.last_fetch_ms <= since_ms)
        ]

    def successors(self) -> tuple[ReplicaKey, ...]:
        """Return the other voters, those with the longest log first."""
        others = [voter for voter in self.voters.values() if not voter.key.matches(self.key)]
        others.sort(key=lambda voter: (-self._end_of(voter), voter.key))
        return tuple(voter.key for voter in others)

    def is_caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """Return whether an observer may become a voter without delaying commits."""
        observer = self.observers.get(key)
        return (
            observer is not None
            and observer.last_caught_up_ms > 0
            and observer.last_fetch_ms > max(0, now_ms - _CAUGHT_UP_WITHIN_MS)
        )

    def forget_silent_observers(self, now_ms: int) -> None:
        """Forget the observers that have stopped."""
        for key in [key for key, seen in self.observers.items() if _is_silent(seen, now_ms)]:
            del self.observers[key]

    def observer_count(self, now_ms: int) -> int:
        """Return how many observers have fetched recently."""
        return sum(not _is_silent(seen, now_ms) for seen in self.observers.values())

    def _observe(self, key: ReplicaKey) -> ReplicaProgress:
        if len(self.observers) >= _MAX_OBSERVERS:
            del self.observers[min(self.observers, key=lambda k: self.observers[k].last_fetch_ms)]
        return self.observers.setdefault(key, ReplicaProgress(key))

    def _end_of(self, voter: ReplicaProgress) -> int:
        if voter.key.matches(self.key):
            return self.synced_offset
        return -1 if voter.end_offset is None else voter.end_offset

    @property
    def _others_in_majority(self) -> int:
        return len(self.voters) // 2 + 1 - (1 if self.is_voter else 0)


def _is_silent(observer: ReplicaProgress, now_ms: int) -> bool:
    return observer.last_fetch_ms <= now_ms - _OBSERVER_FORGOTTEN_AFTER_MS
