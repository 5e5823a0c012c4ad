"""A raft machine in each of its states, reached through its own transitions."""

from __future__ import annotations

from random import Random
from typing import Any

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import KRaftVersion, Voter, VoterEndpoint
from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.model.log_point import FORMATTED_SNAPSHOT, LogPoint, RaftBatch
from wirebroker.coordinator.raft.model.log_view import LogView
from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
from wirebroker.coordinator.raft.model.replica_key import Destination, ReplicaKey
from wirebroker.coordinator.raft.model.voter_history import VoterHistory
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.coordinator.raft.protocol.actions import Respond, Send, Sync
from wirebroker.coordinator.raft.protocol.events import (
    LogSynced,
    RequestReceived,
    ResponseReceived,
    Tick,
)
from wirebroker.coordinator.raft.protocol.messages import (
    NO_LEADER,
    KnownLeader,
    LogFetchRequest,
    VoteResponse,
)
from wirebroker.coordinator.raft.raft_replica import RaftReplica
from wirebroker.coordinator.raft.states.replica_core import Identity

CLUSTER = "the cluster"
LISTENER = "CONTROLLER"
# The epoch in which the replicas start, and the end of their log.
EPOCH = 5
LOG_END = LogPoint(4, 10)
UNDECIDED = ElectionState(EPOCH)
DEFAULTS = QuorumSettings()
STATES = ["unattached", "prospective", "candidate", "leader", "follower", "resigned", "observer"]


def directory(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def endpoints(node_id: int) -> tuple[VoterEndpoint, ...]:
    return (VoterEndpoint(LISTENER, f"node{node_id}", 9093),)


def voter_set(*node_ids: int, is_static: bool = False) -> VoterSet:
    return VoterSet(
        Voter(
            node_id,
            ZERO_UUID if is_static else directory(node_id),
            endpoints(node_id),
            0,
            0 if is_static else 1,
        )
        for node_id in node_ids
    )


BOOTSTRAP = (Destination(-2, "node2", 9093), Destination(-3, "node3", 9093))


class Machine:
    """One machine with its own clock; keeps the actions of the last step."""

    def __init__(
        self,
        *,
        own: int = 1,
        voters: tuple[int, ...] = (1, 2, 3),
        members: VoterSet | None = None,
        is_static: bool = False,
        election: ElectionState = UNDECIDED,
        log: LogView | None = None,
        settings: QuorumSettings = DEFAULTS,
        is_voter_capable: bool = True,
        bootstrap: tuple[Destination, ...] = BOOTSTRAP,
    ) -> None:
        self.now_ms = 1_000_000
        if members is None:
            members = voter_set(*voters, is_static=is_static)
        history = VoterHistory(members if is_static else VoterSet())
        if not is_static:
            history.reset(3, [KRaftVersion(1), members.to_record()])
        if log is None:
            log = LogView(
                end_offset=LOG_END.offset,
                epochs=[(1, 0), (LOG_END.epoch, 5)],
                snapshots=[(FORMATTED_SNAPSHOT, 100)],
            )
        self.replica = RaftReplica(
            Identity(
                key(own),
                CLUSTER,
                endpoints(own),
                LISTENER,
                bootstrap,
                is_voter_capable,
            ),
            settings=settings,
            log=log,
            history=history,
            election=election,
            random=Random(1),
        )
        self.core: Any = self.replica.core
        self.actions = self.replica.start(self.now_ms).actions

    @property
    def state_name(self) -> str:
        name = self.core.state.name.lower()
        is_passive = name in ("unattached", "follower")
        return "observer" if is_passive and not self.core.is_voter else name

    @property
    def epoch(self) -> int:
        return self.core.state.epoch

    def step(self, event):
        step = self.replica.step(event, self.now_ms)
        self.actions = step.actions
        return step

    def pass_time(self, duration_ms: int):
        self.now_ms += duration_ms
        return self.step(Tick())

    def ask(self, request):
        """Return the response to a request; None if it is held."""
        token = object()
        self.step(RequestReceived(token, request))
        return next(
            (a.response for a in self.actions if isinstance(a, Respond) and a.token is token), None
        )

    def sent(self, kind: type) -> list:
        return [a for a in self.actions if isinstance(a, Send) and isinstance(a.request, kind)]

    def answer(self, send: Send, response) -> None:
        self.step(ResponseReceived(send.request_id, send.destination, response))

    def of(self, kind: type) -> list:
        return [action for action in self.actions if isinstance(action, kind)]

    def sync(self) -> None:
        """End the syncs of the last step."""
        for action in self.of(Sync):
            self.step(LogSynced(action.point))

    def become_candidate(self) -> None:
        self.pass_time(2 * self.core.settings.election_timeout_ms + 2_000)
        (send, *_) = [a for a in self.actions if isinstance(a, Send)]
        granted = VoteResponse(ErrorCode.NONE, KnownLeader(NO_LEADER, self.epoch), is_granted=True)
        self.answer(send, granted)

    def become_leader(self) -> None:
        self.become_candidate()
        (send, *_) = [a for a in self.actions if isinstance(a, Send)]
        granted = VoteResponse(ErrorCode.NONE, KnownLeader(NO_LEADER, self.epoch), is_granted=True)
        self.answer(send, granted)

    def fetch_as(self, node_id: int, offset: int | None = None):
        """Fetch from the machine, a leader, as another replica that has the log up to `offset`."""
        end = self.core.log.end if offset is None else LogPoint(LOG_END.epoch, offset)
        return self.ask(LogFetchRequest(CLUSTER, key(node_id), self.epoch, end, 1 << 40, 1_000, 0))

    def commit_everything(self) -> None:
        self.sync()
        for voter in self.core.history.last_voters.keys:
            if voter.replica_id != 1:
                self.fetch_as(voter.replica_id)


def machine_in(state: str, *, is_static: bool = False) -> Machine:
    """Return a machine of node 1 in a state, in EPOCH or, if it won an election, the next."""
    following = ElectionState(EPOCH, 2)
    match state:
        case "follower":
            return Machine(election=following, is_static=is_static)
        case "observer":
            return Machine(own=9, election=following, is_static=is_static)
        case "resigned":
            return Machine(election=ElectionState(EPOCH, 1), is_static=is_static)
    machine = Machine(is_static=is_static)
    match state:
        case "prospective":
            machine.pass_time(2_000)
        case "candidate":
            machine.become_candidate()
        case "leader":
            machine.become_leader()
    assert machine.state_name == state
    return machine


def batch(base_offset: int, epoch: int, payload: object = "data") -> RaftBatch:
    return RaftBatch(base_offset, base_offset + 1, epoch, (), payload)
