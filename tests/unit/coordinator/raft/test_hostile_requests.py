"""Requests that no sound replica sends: refused in every state, and they change nothing.

The errors are Kafka's (tests/transcripts/quorum), except for bounds that Kafka does not have.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.coordinators.raft_kit import (
    CLUSTER,
    LOG_END,
    STATES,
    Machine,
    directory,
    endpoints,
    key,
    machine_in,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import VoterEndpoint
from wirebroker.coordinator.raft.handlers.snapshot_download import MAX_SNAPSHOT_BYTES
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.protocol.actions import (
    Append,
    Persist,
    Truncate,
    Violation,
    WriteSnapshot,
)
from wirebroker.coordinator.raft.protocol.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    KnownLeader,
    LogFetchRequest,
    LogFetchResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from wirebroker.coordinator.raft.states.replica_core import MAX_EPOCH

STRANGER = 66
FUTURE = MAX_EPOCH + 1
MANY = tuple(VoterEndpoint(f"L{n}", "host", 9093) for n in range(101))
LONG = (VoterEndpoint("CONTROLLER", "h" * 1_001, 9093),)


def vote(epoch, **changes):
    request = VoteRequest(CLUSTER, None, key(STRANGER), epoch, LogPoint(4, 99), is_pre_vote=False)
    return request._replace(**changes)


def begin(epoch, **changes):
    request = BeginQuorumEpochRequest(CLUSTER, None, STRANGER, epoch, endpoints(STRANGER))
    return request._replace(**changes)


def end(epoch, **changes):
    request = EndQuorumEpochRequest(CLUSTER, STRANGER, epoch, (), endpoints(STRANGER))
    return request._replace(**changes)


def fetch(epoch, **changes):
    request = LogFetchRequest(CLUSTER, key(STRANGER), epoch, LOG_END)
    return request._replace(**changes)


def snapshot(epoch, **changes):
    request = FetchSnapshotRequest(CLUSTER, key(STRANGER), epoch, LogPoint(4, 10), 0, 1_000)
    return request._replace(**changes)


def update(epoch, **changes):
    request = UpdateRaftVoterRequest(CLUSTER, epoch, key(2), endpoints(2), 0, 1)
    return request._replace(**changes)


ANOTHER = {"cluster_id": "another"}
FOREIGN = ErrorCode.INCONSISTENT_CLUSTER_ID
INVALID = ErrorCode.INVALID_REQUEST
# name: request of an epoch, epochs after the present one, error.
REFUSED: dict[str, tuple[Any, int, dict[str, Any], ErrorCode]] = {
    "vote of another cluster": (vote, 5, ANOTHER, FOREIGN),
    "vote of a past epoch": (vote, -1, {"log_end": LogPoint(1, 99)}, ErrorCode.FENCED_LEADER_EPOCH),
    "vote of the last epoch": (vote, FUTURE, {}, INVALID),
    "pre-vote of the last epoch": (vote, FUTURE, {"is_pre_vote": True}, INVALID),
    "vote without candidate": (vote, 1, {"candidate": ReplicaKey(-1)}, INVALID),
    "vote for the receiver": (vote, 1, {"candidate": None}, INVALID),
    "vote with a negative offset": (vote, 1, {"log_end": LogPoint(4, -1)}, INVALID),
    "vote with a negative epoch": (vote, 1, {"log_end": LogPoint(-1, 5)}, INVALID),
    "vote with a log of the future": (vote, 1, {"log_end": LogPoint(FUTURE, 5)}, INVALID),
    "leader of another cluster": (begin, 5, ANOTHER, FOREIGN),
    "leader of a past epoch": (begin, -1, {}, ErrorCode.FENCED_LEADER_EPOCH),
    "leader of the last epoch": (begin, FUTURE, {}, INVALID),
    "leader without id": (begin, 1, {"leader_id": -1}, INVALID),
    "leader with the receiver's id": (begin, 1, {"leader_id": None}, INVALID),
    "leader with many listeners": (begin, 1, {"endpoints": MANY}, INVALID),
    "leader with a long host": (begin, 1, {"endpoints": LONG}, INVALID),
    "resignation of another cluster": (end, 5, ANOTHER, FOREIGN),
    "resignation of a past epoch": (end, -1, {}, ErrorCode.FENCED_LEADER_EPOCH),
    "resignation of the last epoch": (end, FUTURE, {}, INVALID),
    "resignation without id": (end, 1, {"leader_id": -1}, INVALID),
    "resignation with many listeners": (end, 1, {"endpoints": MANY}, INVALID),
    "fetch of another cluster": (fetch, 0, ANOTHER, FOREIGN),
    "fetch of a past epoch": (fetch, -1, {}, ErrorCode.FENCED_LEADER_EPOCH),
    "fetch of a later epoch": (fetch, 1, {}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    "fetch of the last epoch": (fetch, FUTURE, {}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    "fetch at a negative offset": (fetch, 0, {"log_end": LogPoint(4, -1)}, INVALID),
    "fetch after a negative epoch": (fetch, 0, {"log_end": LogPoint(-1, 5)}, INVALID),
    "fetch after a later epoch": (fetch, 0, {"log_end": LogPoint(FUTURE, 5)}, INVALID),
    "fetch that waits negatively": (fetch, 0, {"max_wait_ms": -1}, INVALID),
    "snapshot of another cluster": (snapshot, 0, ANOTHER, FOREIGN),
    "snapshot in a past epoch": (snapshot, -1, {}, ErrorCode.FENCED_LEADER_EPOCH),
    "snapshot in a later epoch": (snapshot, 1, {}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    "update of another cluster": (update, 0, ANOTHER, FOREIGN),
    "update in a past epoch": (update, -1, {}, ErrorCode.FENCED_LEADER_EPOCH),
    "update in a later epoch": (update, 1, {}, ErrorCode.UNKNOWN_LEADER_EPOCH),
}


def memory(machine: Machine) -> tuple:
    """Return everything that a refused request must leave as it is."""
    core = machine.core
    state = core.state
    return (
        machine.state_name,
        state.epoch,
        state.leader_id,
        state.voted,
        core.log.end,
        core.high_watermark,
        core.history.last_voters,
        core.persisted,
    )


def request_to(machine: Machine, name: str):
    make, epoch_change, changes, _ = REFUSED[name]
    epoch = FUTURE if epoch_change == FUTURE else machine.epoch + epoch_change
    own = machine.core.key
    for field in ("candidate", "leader_id"):
        if field in changes and changes[field] is None:
            changes = {**changes, field: own if field == "candidate" else own.replica_id}
    return make(epoch, **changes)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", REFUSED)
def test_refused_request_changes_nothing(name, state):
    machine = machine_in(state)
    before = memory(machine)
    response = machine.ask(request_to(machine, name))
    assert response.error is REFUSED[name][3]
    assert memory(machine) == before
    assert not any(machine.of(kind) for kind in (Persist, Append, Truncate))


@pytest.mark.parametrize("state", [state for state in STATES if state != "leader"])
@pytest.mark.parametrize("make", [fetch, snapshot, update])
def test_only_the_leader_serves(make, state):
    machine = machine_in(state)
    before = memory(machine)
    response = machine.ask(make(machine.epoch))
    assert response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert memory(machine) == before


@pytest.mark.parametrize(
    ("request_kind", "changes", "error"),
    [
        (AddRaftVoterRequest, ANOTHER, FOREIGN),
        (AddRaftVoterRequest, {"voter": ReplicaKey(-1, directory(9))}, INVALID),
        (AddRaftVoterRequest, {"voter": ReplicaKey(9, ZERO_UUID)}, INVALID),
        (AddRaftVoterRequest, {"endpoints": ()}, INVALID),
        (AddRaftVoterRequest, {"endpoints": endpoints(9) + MANY}, INVALID),
        (AddRaftVoterRequest, {"endpoints": LONG}, INVALID),
        (RemoveRaftVoterRequest, ANOTHER, FOREIGN),
        (RemoveRaftVoterRequest, {"voter": ReplicaKey(-1, directory(9))}, INVALID),
        (RemoveRaftVoterRequest, {}, ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_refused_change_of_voters_changes_nothing(request_kind, changes, error):
    machine = machine_in("leader")
    machine.commit_everything()
    request: AddRaftVoterRequest | RemoveRaftVoterRequest = RemoveRaftVoterRequest(CLUSTER, key(9))
    if request_kind is AddRaftVoterRequest:
        request = AddRaftVoterRequest(CLUSTER, key(9), endpoints(9), 1_000)
    before = memory(machine)
    assert machine.ask(request._replace(**changes)).error is error
    assert memory(machine) == before


@pytest.mark.parametrize("listeners", [(), MANY, endpoints(2) + MANY, LONG])
def test_update_with_unusable_listeners_changes_nothing(listeners):
    machine = machine_in("leader")
    machine.commit_everything()
    before = memory(machine)
    assert machine.ask(update(machine.epoch, endpoints=listeners)).error is INVALID
    assert memory(machine) == before


@pytest.mark.parametrize("offset", [11, 1_000_000, (1 << 63) - 1])
def test_fetch_after_the_end_of_the_log_commits_nothing(offset):
    """A stranger, or a faulty voter, cannot make the leader count what it does not have."""
    machine = machine_in("leader")
    machine.sync()
    end_of_log = machine.core.log.end
    for voter in (2, 3, STRANGER):
        response = machine.ask(
            fetch(machine.epoch, replica=key(voter), log_end=LogPoint(machine.epoch, offset + 1))
        )
        assert response.diverging == end_of_log
    assert machine.core.high_watermark is None


def test_many_new_voters_leave_no_memory():
    machine = machine_in("leader")
    machine.commit_everything()
    for number in range(1_000):
        request = AddRaftVoterRequest(CLUSTER, key(9)._replace(replica_id=1_000 + number), (), 1)
        machine.ask(request._replace(endpoints=endpoints(9)))
        machine.pass_time(machine.core.settings.request_timeout_ms)
        for voter in (2, 3):
            machine.fetch_as(voter)
    assert machine.state_name == "leader"
    assert len(machine.core.requests._exchanges) <= 101


@pytest.mark.parametrize("size", [MAX_SNAPSHOT_BYTES + 1, (1 << 63) - 1])
def test_oversized_snapshot_is_not_written(size):
    machine = machine_in("follower")
    leader = KnownLeader(2, machine.epoch, endpoints(2))
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, LogFetchResponse(ErrorCode.NONE, leader, snapshot=LogPoint(5, 40)))
    (send,) = machine.sent(FetchSnapshotRequest)
    piece = FetchSnapshotResponse(
        ErrorCode.NONE, leader, snapshot=LogPoint(5, 40), size=size, position=0, data=b"abc"
    )
    machine.answer(send, piece)
    assert machine.of(Violation)
    assert not machine.of(WriteSnapshot)
