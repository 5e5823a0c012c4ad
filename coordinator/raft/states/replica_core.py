"""What all handlers of one replica share: its identity, log, voters, state and pending actions.

A step of the machine is one call of a handler. It changes this object and adds actions to `actions`
in the order in which they must be performed. Each handler leaves the invariants of `check` intact.

Source: Kafka's KafkaRaftClient and QuorumState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import Voter
from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.protocol.actions import (
    Append,
    DiscardSnapshot,
    HighWatermarkAdvanced,
    Respond,
    Send,
    Sync,
    Truncate,
    Violation,
    VotersChanged,
)
from wirebroker.coordinator.raft.protocol.messages import (
    NO_LEADER,
    KnownLeader,
    VoteRequest,
    VoteResponse,
)
from wirebroker.coordinator.raft.states.epoch_states import (
    CandidateState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.request_manager import RequestManager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
    from wirebroker.coordinator.raft.model.log_view import LogView
    from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
    from wirebroker.coordinator.raft.model.replica_key import Destination, Endpoints, ReplicaKey
    from wirebroker.coordinator.raft.model.voter_history import VoterHistory
    from wirebroker.coordinator.raft.protocol.actions import RaftAction
    from wirebroker.coordinator.raft.protocol.messages import (
        LogFetchRequest,
        LogFetchResponse,
        RaftRequest,
        RaftResponse,
    )
    from wirebroker.coordinator.raft.states.request_manager import RandomSource

RaftState: TypeAlias = (
    UnattachedState
    | ProspectiveState
    | CandidateState
    | LeaderState
    | FollowerState
    | ResignedState
)
# Later epochs are refused: a peer could otherwise use up all of them with one request.
MAX_EPOCH: Final = (1 << 31) - 2


class Identity(NamedTuple):
    """Who a replica is, and which nodes it knows before it has a log.

    Attributes:
        listener_name: The controller listener, by which voters reach each other.
        is_voter_capable: Whether it is a controller. A broker only observes, also if its directory
            was a voter's.
        supported_versions: The range of kraft.version.
    """

    key: ReplicaKey
    cluster_id: str
    endpoints: Endpoints
    listener_name: str
    bootstrap: Sequence[Destination] = ()
    is_voter_capable: bool = True
    supported_versions: tuple[int, int] = (0, 1)


class WaitingFetch(NamedTuple):
    """A fetch that waits for records or for a higher high watermark.

    `empty_response` is sent at the deadline.
    """

    request: LogFetchRequest
    empty_response: LogFetchResponse
    deadline_ms: int


class ReplicaCore:
    """One replica.

    Attributes:
        actions: The actions of the present step.
        persisted: The election state in the last Persist.
        high_watermark: The end of what is known to be committed; it never decreases.
        installing: The downloaded snapshot that is about to replace the log.
        registered_controllers: The controllers in the metadata, besides the voters in the log.
        leader_heard_ms: When a leader last responded to this replica; None before that.
        shutdown_deadline_ms: When a requested shutdown ends at the latest.
        waiting: Fetches without a response, by their tokens.
    """

    __slots__ = (
        "actions",
        "high_watermark",
        "history",
        "identity",
        "installing",
        "is_stopped",
        "key",
        "leader_heard_ms",
        "log",
        "persisted",
        "persisted_version",
        "random",
        "registered_controllers",
        "requests",
        "settings",
        "shutdown_deadline_ms",
        "state",
        "waiting",
    )

    def __init__(
        self,
        identity: Identity,
        *,
        settings: QuorumSettings,
        log: LogView,
        history: VoterHistory,
        election: ElectionState,
        random: RandomSource,
    ) -> None:
        assert identity.key.directory_id != ZERO_UUID, identity
        self.identity = identity
        self.key = identity.key
        self.settings = settings
        self.log = log
        self.history = history
        self.random = random
        self.requests = RequestManager(settings, random)
        self.state: RaftState = UnattachedState(election.epoch, None, None, 0)
        self.persisted = election
        self.persisted_version = -1
        self.high_watermark: int | None = None
        self.installing: LogPoint | None = None
        self.registered_controllers: Sequence[Destination] = ()
        self.leader_heard_ms: int | None = None
        self.shutdown_deadline_ms: int | None = None
        self.is_stopped = False
        self.waiting: dict[object, WaitingFetch] = {}
        self.actions: list[RaftAction] = []

    @property
    def is_voter(self) -> bool:
        """Whether it is a controller and among the last voters in its log."""
        return self.identity.is_voter_capable and self.history.last_voters.is_voter(self.key)

    @property
    def is_only_voter(self) -> bool:
        """Whether the quorum has no other voters."""
        return self.is_voter and len(self.history.last_voters) == 1

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""
        return isinstance(self.state, LeaderState)

    @property
    def may_elect(self) -> bool:
        """Whether it may begin an election when its timeout passes."""
        return self.shutdown_deadline_ms is None and self.installing is None

    @property
    def bootstrap_servers(self) -> tuple[Destination, ...]:
        """The nodes that may know the leader.

        An observer also asks voters and registered controllers: all configured ones may be gone.
        """
        configured = tuple(self.identity.bootstrap)
        if self.is_voter:
            return configured
        voters, name = self.history.last_voters, self.identity.listener_name
        known = {server.node_id: server for server in self.registered_controllers}
        for voter_id in voters.ids:
            server = voters.destination(voter_id, name)
            if server is not None:
                known[voter_id] = server
        known.pop(self.key.replica_id, None)
        # One connection for each address.
        addresses = {server[1:] for server in known.values()}
        others = (server for server in configured if server[1:] not in addresses)
        return (*others, *sorted(known.values()))

    @property
    def must_sync(self) -> bool:
        """Whether the end of its log counts for commits, now or once it is a voter."""
        return self.identity.is_voter_capable or self.history.last_voters.is_voter(self.key)

    @property
    def own_voter(self) -> Voter:
        """Its entry in a record of voters.

        Without a listener it keeps the recorded ones: Kafka's records of voters have at least one.
        """
        endpoints = self.identity.endpoints
        if not endpoints:
            endpoints = self.history.last_voters.endpoints(self.key.replica_id)
        return Voter(*self.key, endpoints, *self.identity.supported_versions)

    def known_leader(self) -> KnownLeader:
        """Return the leader that a response names."""
        leader_id = self.state.leader_id
        return KnownLeader(
            NO_LEADER if leader_id is None else leader_id, self.state.epoch, self.state.endpoints
        )

    def election_state(self) -> ElectionState:
        """Return what must be remembered of the present state."""
        state = self.state
        is_static = self.history.kraft_version == 0
        voters = tuple(sorted(self.history.last_voters.ids)) if is_static else ()
        return ElectionState(state.epoch, state.leader_id, state.voted, voters)

    @property
    def is_persisted(self) -> bool:
        """Whether what must be remembered of the present state is on disk."""
        persisted, state = self.persisted, self.state
        return (
            persisted.epoch == state.epoch
            and persisted.leader_id == state.leader_id
            and persisted.voted == state.voted
        )

    def election_timeout_ms(self) -> int:
        """Return a random timeout, so that voters rarely become candidates at the same time."""
        timeout_ms = self.settings.election_timeout_ms
        return timeout_ms + self.random.randrange(timeout_ms) if timeout_ms else 0

    def accepts_cluster(self, cluster_id: str | None) -> bool:
        """Return whether a request belongs to this cluster."""
        return cluster_id in (None, self.identity.cluster_id)

    def leader_error(self, epoch: int) -> ErrorCode:
        """Return why a request for the leader of an epoch must be refused here, or NONE."""
        if epoch < self.state.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.state.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.shutdown_deadline_ms is not None:
            return ErrorCode.BROKER_NOT_AVAILABLE
        return ErrorCode.NONE

    def respond(self, token: object, response: RaftResponse) -> None:
        """Send a response."""
        if isinstance(response, VoteResponse) and response.is_granted:
            assert self.is_persisted, "a vote must be on disk"
        self.actions.append(Respond(token, response))

    def send(self, destination: Destination, request: RaftRequest, now_ms: int) -> bool:
        """Send a request if the node is ready for one; return whether it was sent."""
        if not self.requests.is_ready(destination.node_id, now_ms):
            return False
        if isinstance(request, VoteRequest):
            assert self.is_persisted, "a vote must be on disk"
        request_id = self.requests.sent(destination.node_id, request, now_ms)
        self.actions.append(Send(request_id, destination, request))
        return True

    def violation(self, text: str, *, lacks_commits: bool = False) -> None:
        """Report a message that breaks the protocol."""
        self.actions.append(Violation(text, lacks_commits))

    def leader_responded(self, follower: FollowerState, now_ms: int) -> None:
        """Note that the leader that this replica follows works."""
        follower.fetch_deadline_ms = now_ms + self.settings.fetch_timeout_ms
        follower.has_fetched = True
        self.leader_heard_ms = now_ms

    def append(self, batches: Sequence[RaftBatch]) -> bool:
        """Append batches; return whether they change the voters."""
        assert self.installing is None, self.installing
        has_voters = False
        for batch in batches:
            self.log.append(batch)
            if batch.controls and self.history.add(batch):
                has_voters = True
        self.actions.append(Append(tuple(batches)))
        if has_voters:
            self.actions.append(VotersChanged(self.history.last_voters))
        return has_voters

    def sync(self) -> None:
        """Request a sync of the log, if this replica is a voter."""
        if self.must_sync:
            self.actions.append(Sync(self.log.end))
        else:
            self.log.synced_offset = self.log.end_offset

    def truncate(self, end_offset: int) -> None:
        """Delete uncommitted records from an offset on."""
        assert end_offset >= (self.high_watermark or 0), (end_offset, self.high_watermark)
        self.log.truncate(end_offset)
        self.actions.append(Truncate(end_offset))
        voters = self.history.last_voters
        self.history.truncate(end_offset)
        if self.history.last_voters != voters:
            self.actions.append(VotersChanged(self.history.last_voters))

    def give_up_download(self) -> None:
        """End the download of a snapshot, if there is one, and delete its bytes."""
        state = self.state
        if isinstance(state, FollowerState) and state.download is not None:
            if state.download.position:
                self.actions.append(DiscardSnapshot(state.download.point))
            state.download = None

    def commit(self, high_watermark: int) -> bool:
        """Raise the high watermark; return whether it rose."""
        if high_watermark <= (self.high_watermark or 0):
            return False
        assert high_watermark <= self.log.end_offset, (high_watermark, self.log.end_offset)
        self.high_watermark = high_watermark
        self.actions.append(HighWatermarkAdvanced(high_watermark))
        return True

    def check(self) -> None:
        """Assert the invariants that hold between steps."""
        self.log.check()
        state = self.state
        assert self.is_persisted, (self.persisted, state)
        assert state.epoch >= self.log.last_epoch, (state, self.log.end)
        assert (self.high_watermark or 0) <= self.log.end_offset
        if isinstance(state, LeaderState):
            assert self.log.last_epoch == state.epoch, "the leader appends in its own epoch"
            assert state.synced_offset <= state.log_end_offset == self.log.end_offset
            committed = state.high_watermark
            assert committed is None or state.start_offset < committed, "commits its own epoch"
        else:
            assert not self.waiting, "only a leader holds fetches"
        if isinstance(state, CandidateState):
            assert state.voted == self.key, state
