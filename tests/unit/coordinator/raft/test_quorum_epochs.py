"""BeginQuorumEpoch, EndQuorumEpoch, resignations and restarts."""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import (
    CLUSTER,
    EPOCH,
    LOG_END,
    STATES,
    Machine,
    endpoints,
    key,
    machine_in,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.control import LeaderChange, QuorumVoter
from wirebroker.coordinator.raft.handlers.quorum_epochs import election_backoff_ms
from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.protocol.actions import (
    Append,
    LeaderChanged,
    Persist,
    ShutdownFinished,
    Violation,
)
from wirebroker.coordinator.raft.protocol.events import ResignationRequested, ShutdownRequested
from wirebroker.coordinator.raft.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    KnownLeader,
    LogFetchRequest,
    LogFetchResponse,
    RequestFailure,
    VoteRequest,
)


def begin(machine, *, epoch, leader=2, voter=None):
    receiver = machine.core.key if voter is None else voter
    return BeginQuorumEpochRequest(CLUSTER, receiver, leader, epoch, endpoints(leader))


def end(machine, *, epoch, leader=2, preferred=(1, 3)):
    del machine
    keys = tuple(key(node_id) for node_id in preferred)
    return EndQuorumEpochRequest(CLUSTER, leader, epoch, keys, endpoints(leader))


@pytest.mark.parametrize("make", [begin, end])
@pytest.mark.parametrize("state", STATES)
def test_later_epoch_makes_a_follower(state, make):
    machine = machine_in(state)
    epoch = machine.epoch + 1
    response = machine.ask(make(machine, epoch=epoch, leader=3))
    assert response.error is ErrorCode.NONE
    leader = KnownLeader(3, epoch, endpoints(3))
    if make is begin or state == "observer":
        assert response.leader == leader
        assert machine.state_name == ("observer" if state == "observer" else "follower")
        assert machine.of(Persist)[-1].election.leader_id == 3
    else:
        # The first of the preferred voters begins an election at once.
        assert machine.state_name == "prospective"
    assert machine.epoch == epoch


@pytest.mark.parametrize("make", [begin, end])
@pytest.mark.parametrize("state", STATES)
def test_earlier_epoch_is_fenced(state, make):
    machine = machine_in(state)
    epoch = machine.epoch
    response = machine.ask(make(machine, epoch=epoch - 1))
    assert response.error is ErrorCode.FENCED_LEADER_EPOCH
    assert (machine.state_name, machine.epoch) == (state, epoch)


@pytest.mark.parametrize("state", ["unattached", "prospective", "candidate"])
def test_leader_of_same_epoch_is_followed(state):
    machine = machine_in(state)
    epoch = machine.epoch
    assert machine.ask(begin(machine, epoch=epoch)).error is ErrorCode.NONE
    assert (machine.state_name, machine.core.state.leader_id) == ("follower", 2)


@pytest.mark.parametrize("state", ["leader", "follower", "resigned", "observer"])
def test_second_leader_of_an_epoch_is_reported(state):
    machine = machine_in(state)
    response = machine.ask(begin(machine, epoch=machine.epoch, leader=3))
    assert response.error is ErrorCode.INVALID_REQUEST
    assert machine.of(Violation)
    assert machine.state_name == state


@pytest.mark.parametrize("make", [begin, end])
@pytest.mark.parametrize("state", STATES)
def test_other_cluster_is_refused(state, make):
    machine = machine_in(state)
    request = make(machine, epoch=machine.epoch + 1)._replace(cluster_id="another")
    assert machine.ask(request) == RequestFailure(ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert machine.state_name == state


def test_announcement_to_other_directory_is_refused_but_followed():
    machine = machine_in("unattached")
    other = ReplicaKey(1, bytes(15) + b"x")
    response = machine.ask(begin(machine, epoch=EPOCH + 1, voter=other))
    assert response.error is ErrorCode.INVALID_VOTER_KEY
    assert (machine.state_name, machine.epoch) == ("follower", EPOCH + 1)


@pytest.mark.parametrize(
    ("preferred", "expected_ms"),
    [
        ((), 0),
        ((1, 2, 3), 0),
        ((2, 1, 3), 250),
        ((2, 3, 1), 500),
        ((2, 3), 1_000),
        ((3, 1), 500),
    ],
)
def test_voters_with_longer_logs_get_time(preferred, expected_ms):
    machine = machine_in("follower")
    keys = tuple(key(node_id) for node_id in preferred)
    assert election_backoff_ms(machine.core, keys) == expected_ms


def test_leader_announces_itself_until_voters_fetch():
    machine = machine_in("leader")
    sent = machine.sent(BeginQuorumEpochRequest)
    assert [send.request.voter for send in sent] == [key(2), key(3)]
    assert sent[0].request.endpoints == endpoints(1)
    leader = KnownLeader(1, machine.epoch, endpoints(1))
    for send in sent:
        machine.answer(send, BeginQuorumEpochResponse(ErrorCode.NONE, leader))
    machine.pass_time(900)
    machine.fetch_as(2)
    machine.pass_time(100)
    sent = machine.sent(BeginQuorumEpochRequest)
    assert [send.request.voter for send in sent] == [key(3)]


def test_first_records_with_dynamic_voters():
    machine = machine_in("leader")
    (append,) = machine.of(Append)
    ids = tuple(QuorumVoter(node_id) for node_id in (1, 2, 3))
    change = LeaderChange(1, ids, (QuorumVoter(1), QuorumVoter(2)))
    assert append.batches[0].controls == (change,)
    assert (append.batches[0].base_offset, append.batches[0].epoch) == (LOG_END.offset, EPOCH + 1)
    (changed,) = [c for c in machine.of(LeaderChanged) if c.leader_id == 1]
    assert changed == LeaderChanged(1, EPOCH + 1, LOG_END.offset)


def test_leader_resigns_without_a_majority():
    machine = machine_in("leader")
    machine.pass_time(2_900)
    machine.fetch_as(2)  # itself and node 2: a majority
    machine.pass_time(2_999)
    assert machine.state_name == "leader"
    machine.pass_time(1)
    assert machine.state_name == "resigned"
    assert machine.of(LeaderChanged) == [LeaderChanged(None, EPOCH + 1)]
    sent = machine.sent(EndQuorumEpochRequest)
    assert [send.destination.node_id for send in sent] == [2, 3]
    # Node 2 has the longer log.
    assert sent[0].request.preferred == (key(2), key(3))


def test_resignation_ends_the_epoch():
    machine = machine_in("leader")
    machine.step(ResignationRequested(machine.epoch - 1))
    assert machine.state_name == "leader"
    machine.step(ResignationRequested(machine.epoch))
    assert machine.state_name == "resigned"
    (first, _) = machine.sent(EndQuorumEpochRequest)
    leader = KnownLeader(1, machine.epoch, endpoints(1))
    machine.answer(first, EndQuorumEpochResponse(ErrorCode.NONE, leader))
    assert machine.core.state.unacknowledged == {3}
    # Unattached, and its election timeout has passed already.
    machine.pass_time(2_000)
    assert (machine.state_name, machine.epoch) == ("prospective", EPOCH + 2)
    assert machine.of(Persist)[0].election == ElectionState(EPOCH + 2)


def test_leader_shuts_down_when_it_has_a_successor():
    machine = machine_in("leader")
    machine.step(ShutdownRequested(10_000))
    assert machine.state_name == "resigned"
    assert machine.sent(EndQuorumEpochRequest)
    assert not machine.of(ShutdownFinished)
    machine.ask(begin(machine, epoch=machine.epoch + 1, leader=2))
    assert machine.of(ShutdownFinished) == [ShutdownFinished(is_timed_out=False)]
    assert not machine.pass_time(10_000).actions


def test_shutdown_without_successor_times_out():
    machine = machine_in("leader")
    machine.step(ShutdownRequested(10_000))
    machine.pass_time(9_999)
    assert not machine.of(ShutdownFinished)
    machine.pass_time(1)
    assert machine.of(ShutdownFinished) == [ShutdownFinished(is_timed_out=True)]


@pytest.mark.parametrize(
    ("election", "expected"),
    [
        (ElectionState(), ("unattached", 4)),  # the log's last epoch
        (ElectionState(EPOCH), ("unattached", EPOCH)),
        (ElectionState(EPOCH, None, key(2)), ("unattached", EPOCH)),
        (ElectionState(EPOCH, None, key(1)), ("candidate", EPOCH)),
        (ElectionState(EPOCH, 1), ("resigned", EPOCH)),
        (ElectionState(EPOCH, 2), ("follower", EPOCH)),
        (ElectionState(EPOCH, 8), ("unattached", EPOCH)),  # without a known address
    ],
)
def test_state_after_a_restart(election, expected):
    machine = Machine(election=election)
    assert (machine.state_name, machine.epoch) == expected
    assert machine.core.state.voted == election.voted


def test_wiped_node_does_not_vote_in_the_epoch_of_its_former_self():
    machine = machine_in("observer")
    (send,) = machine.sent(LogFetchRequest)
    leader = KnownLeader(9, EPOCH + 1, endpoints(9))
    machine.answer(send, LogFetchResponse(ErrorCode.FENCED_LEADER_EPOCH, leader))
    assert (machine.state_name, machine.epoch) == ("observer", EPOCH + 1)
    request = VoteRequest(CLUSTER, key(9), key(2), EPOCH + 1, LOG_END, is_pre_vote=False)
    assert not machine.ask(request).is_granted
    assert not machine.of(LeaderChanged)


def test_announcement_under_the_own_id_is_refused():
    machine = machine_in("unattached")
    response = machine.ask(begin(machine, epoch=EPOCH + 4, leader=1))
    assert response.error is ErrorCode.INVALID_REQUEST
    assert machine.of(Violation)
    assert machine.epoch == EPOCH
