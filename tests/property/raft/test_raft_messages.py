"""Messages of faulty or hostile peers never break a raft machine.

In every state and for all requests and responses, the invariants hold (`ReplicaCore.check`), no
committed record is lost, and a vote is given once an epoch (asserted at each Persist).
"""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import (
    CLUSTER,
    STATES,
    endpoints,
    key,
    machine_in,
    voter_set,
)
from tests.support.harness.budget import SharedBudget
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import KRaftVersion, VoterEndpoint
from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.protocol import messages
from wirebroker.coordinator.raft.protocol.actions import InstallSnapshot, Respond, Send, Sync
from wirebroker.coordinator.raft.protocol.events import (
    LogSynced,
    RequestReceived,
    ResponseReceived,
    SnapshotRejected,
)
from wirebroker.coordinator.raft.states.replica_core import MAX_EPOCH

SECONDS = 4
STEPS = 60
ERRORS = [
    *[ErrorCode.NONE] * 6,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_VOTER_KEY,
    ErrorCode.SNAPSHOT_NOT_FOUND,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


class Peer:
    """Makes messages that are well-formed and otherwise arbitrary."""

    def __init__(self, random, machine):
        self.random = random
        self.machine = machine

    def epoch(self):
        if self.random.random() < 0.02:
            return self.random.choice([-1, MAX_EPOCH, MAX_EPOCH + 1])
        return self.machine.epoch + self.random.choice([*[0] * 14, -1, 1, 2])

    def offset(self):
        end = self.machine.core.log.end_offset
        return self.random.choice([end, end, end + self.random.randint(-4, 4), 0, -1, 1 << 62])

    def point(self):
        point = LogPoint(self.epoch(), self.offset())
        return self.random.choice([self.machine.core.log.end, point])

    def replica(self):
        node_id = self.random.choice([1, 2, 3, 4, 9, -1])
        directory = self.random.choice([ZERO_UUID, bytes([node_id & 255]) * 16, bytes(15) + b"z"])
        return ReplicaKey(node_id, directory)

    def some_endpoints(self):
        other = (VoterEndpoint("OTHER", "node2", 1),)
        return self.random.choice([(), other, endpoints(2), (*endpoints(3), *other)])

    def cluster(self):
        return self.random.choice([CLUSTER, CLUSTER, CLUSTER, None, "another"])

    def leader(self):
        leader_id = self.random.choice([-1, 1, 2, 3, 9])
        return messages.KnownLeader(leader_id, self.epoch(), self.some_endpoints())

    def error(self):
        return self.random.choice(ERRORS)

    def batch(self, base_offset):
        controls = self.random.choice(
            [(), (), (KRaftVersion(1), voter_set(1, 2, 4).to_record()), (voter_set().to_record(),)]
        )
        count = self.random.choice([max(1, len(controls)), max(1, len(controls)), 0])
        return RaftBatch(base_offset, base_offset + count, self.epoch(), controls, "data")

    def request(self):
        r, m = self.random, messages
        return r.choice(
            [
                lambda: m.VoteRequest(
                    self.cluster(),
                    r.choice([None, key(1), self.replica()]),
                    self.replica(),
                    self.epoch(),
                    self.point(),
                    r.random() < 0.5,
                ),
                lambda: m.BeginQuorumEpochRequest(
                    self.cluster(),
                    r.choice([None, key(1), self.replica()]),
                    r.choice([1, 2, 3, -1]),
                    self.epoch(),
                    self.some_endpoints(),
                ),
                lambda: m.EndQuorumEpochRequest(
                    self.cluster(),
                    r.choice([1, 2, 3, -1]),
                    self.epoch(),
                    tuple(self.replica() for _ in range(r.randint(0, 3))),
                    self.some_endpoints(),
                ),
                lambda: m.LogFetchRequest(
                    self.cluster(),
                    self.replica(),
                    self.epoch(),
                    self.point(),
                    r.choice([-1, 11, 1 << 62]),
                    r.choice([-1, 0, 1_000]),
                    r.choice([-1, 0, 500]),
                ),
                lambda: m.FetchSnapshotRequest(
                    self.cluster(), self.replica(), self.epoch(), self.point(), self.offset(), -1
                ),
                lambda: m.AddRaftVoterRequest(
                    self.cluster(), self.replica(), self.some_endpoints(), -1, r.random() < 0.5
                ),
                lambda: m.RemoveRaftVoterRequest(self.cluster(), self.replica()),
                lambda: m.UpdateRaftVoterRequest(
                    self.cluster(),
                    self.epoch(),
                    self.replica(),
                    self.some_endpoints(),
                    r.randint(-1, 1),
                    r.randint(-1, 2),
                ),
                m.DescribeQuorumRequest,
                m.KRaftVersionsRequest,
            ]
        )()

    def response(self, request):
        r, m = self.random, messages
        error, leader = self.error(), self.leader()
        if r.random() < 0.1:
            return m.RequestFailure(r.choice([error, ErrorCode.UNSUPPORTED_VERSION]))
        if isinstance(request, m.LogFetchRequest):
            return self.fetch_response(error, leader)
        if isinstance(request, m.FetchSnapshotRequest):
            snapshot = r.choice([None, self.point(), request.snapshot])
            position = r.choice([request.position, self.offset()])
            size = r.choice([3, 6, -1])
            return m.FetchSnapshotResponse(error, leader, snapshot, size, position, data=b"abc")
        versions = r.choice([None, (0, 1), (5, 2)])
        return {
            m.VoteRequest: m.VoteResponse(error, leader, r.random() < 0.7),
            m.BeginQuorumEpochRequest: m.BeginQuorumEpochResponse(error, leader),
            m.EndQuorumEpochRequest: m.EndQuorumEpochResponse(error, leader),
            m.UpdateRaftVoterRequest: m.UpdateRaftVoterResponse(error, leader),
            m.KRaftVersionsRequest: m.KRaftVersionsResponse(error, versions),
            m.AddRaftVoterRequest: m.VoterChangeResponse(error),
            m.RemoveRaftVoterRequest: m.VoterChangeResponse(error),
        }[type(request)]

    def fetch_response(self, error, leader):
        r, m = self.random, messages
        return m.LogFetchResponse(
            error,
            leader,
            self.offset(),
            self.offset(),
            diverging=r.choice([None, None, self.point()]),
            snapshot=r.choice([None, None, self.point()]),
            batches=tuple(self.batch(self.offset()) for _ in range(r.randint(0, 3))),
        )


def run(random, state):
    machine = machine_in(state, is_static=random.random() < 0.3)
    machine.core.commit(8)
    peer = Peer(random, machine)
    in_flight: list[Send] = []
    token = 0
    committed = 8
    for _ in range(STEPS):
        in_flight += machine.of(Send)
        choice = random.random()
        if choice < 0.4:
            token += 1
            machine.step(RequestReceived(token, peer.request()))
            responses = [a for a in machine.of(Respond) if a.token == token]
            assert len(responses) <= 1
        elif choice < 0.8 and in_flight:
            send = in_flight.pop(random.randrange(len(in_flight)))
            event = ResponseReceived(send.request_id, send.destination, peer.response(send.request))
            machine.step(event)
        else:
            machine.pass_time(random.choice([0, 10, 500, 2_500]))
        for action in machine.of(Sync) + machine.of(InstallSnapshot):
            is_sync = isinstance(action, Sync)
            machine.step(LogSynced(action.point) if is_sync else SnapshotRejected(action.point))
        assert (machine.core.high_watermark or 0) >= committed
        committed = machine.core.high_watermark
    return STEPS


@pytest.mark.parametrize("state", STATES)
def test_no_message_breaks_the_machine(state, request):
    budget = SharedBudget(request.config, seconds=SECONDS / len(STATES))
    steps = sum(run(budget.random, state) for _ in budget.rounds())
    assert steps >= STEPS
