"""Votes and pre-votes in every state. Expected values follow Kafka's state classes (KIP-996)."""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import (
    CLUSTER,
    EPOCH,
    LOG_END,
    STATES,
    Machine,
    key,
    machine_in,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.protocol.actions import Persist, Respond
from wirebroker.coordinator.raft.protocol.messages import (
    NO_LEADER,
    KnownLeader,
    RequestFailure,
    VoteRequest,
    VoteResponse,
)
from wirebroker.coordinator.raft.states.replica_core import MAX_EPOCH

SHORT = LogPoint(4, 9)
# A candidate's log is as long as the leader's with the first record of its epoch.
LONG = LogPoint(LOG_END.epoch + 1, LOG_END.offset + 1)


def vote(machine, *, epoch, log_end=LONG, is_pre_vote=False, candidate=3, voter=None):
    receiver = machine.core.key if voter is None else voter
    return VoteRequest(CLUSTER, receiver, key(candidate), epoch, log_end, is_pre_vote)


# state: granted a pre-vote of the same epoch, and a vote of the same epoch.
SAME_EPOCH = {
    "unattached": (True, True),
    "prospective": (True, True),
    "candidate": (True, False),
    "leader": (False, False),
    "follower": (True, False),  # it has not fetched yet
    "resigned": (True, False),
    "observer": (True, False),
}


@pytest.mark.parametrize("state", STATES)
def test_pre_vote_of_same_epoch(state):
    machine = machine_in(state)
    epoch = machine.epoch
    long_end = LogPoint(epoch, 11)
    response = machine.ask(vote(machine, epoch=epoch, log_end=long_end, is_pre_vote=True))
    assert (response.error, response.is_granted) == (ErrorCode.NONE, SAME_EPOCH[state][0])
    assert (machine.state_name, machine.epoch) == (state, epoch)
    assert not machine.of(Persist)


@pytest.mark.parametrize("state", STATES)
def test_vote_of_same_epoch(state):
    machine = machine_in(state)
    epoch = machine.epoch
    response = machine.ask(vote(machine, epoch=epoch, log_end=LogPoint(epoch - 1, 11)))
    is_granted = SAME_EPOCH[state][1]
    assert (response.error, response.is_granted) == (ErrorCode.NONE, is_granted)
    assert (machine.state_name, machine.epoch) == (state, epoch)
    assert (machine.core.state.voted == key(3)) == is_granted


@pytest.mark.parametrize("is_pre_vote", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_vote_of_later_epoch(state, is_pre_vote):
    machine = machine_in(state)
    epoch = machine.epoch + 1
    log_end = LogPoint(epoch - 1, 11)
    response = machine.ask(vote(machine, epoch=epoch, log_end=log_end, is_pre_vote=is_pre_vote))
    assert (response.error, response.is_granted) == (ErrorCode.NONE, True)
    expected = "observer" if state == "observer" else "unattached"
    assert (machine.state_name, machine.epoch) == (expected, epoch)
    assert machine.core.state.voted == (None if is_pre_vote else key(3))


@pytest.mark.parametrize("is_pre_vote", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_vote_for_shorter_log_is_rejected(state, is_pre_vote):
    machine = machine_in(state)
    epoch = machine.epoch + 1
    request = vote(machine, epoch=epoch, log_end=SHORT, is_pre_vote=is_pre_vote)
    response = machine.ask(request)
    assert (response.error, response.is_granted) == (ErrorCode.NONE, False)
    assert machine.core.state.voted is None


@pytest.mark.parametrize("is_pre_vote", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_vote_of_earlier_epoch_is_fenced(state, is_pre_vote):
    machine = machine_in(state)
    epoch = machine.epoch
    request = vote(machine, epoch=epoch - 1, log_end=LogPoint(2, 11), is_pre_vote=is_pre_vote)
    response = machine.ask(request)
    assert (response.error, response.is_granted) == (ErrorCode.FENCED_LEADER_EPOCH, False)
    assert response.leader.epoch == epoch
    assert (machine.state_name, machine.epoch) == (state, epoch)


@pytest.mark.parametrize("state", STATES)
def test_vote_for_other_directory_is_refused(state):
    machine = machine_in(state)
    other = ReplicaKey(machine.core.key.replica_id, bytes(15) + b"x")
    request = vote(machine, epoch=machine.epoch, log_end=LogPoint(4, 11), voter=other)
    response = machine.ask(request)
    assert (response.error, response.is_granted) == (ErrorCode.INVALID_VOTER_KEY, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": EPOCH, "log_end": LogPoint(EPOCH, 11)},  # a new epoch has no records
        {"epoch": EPOCH, "log_end": LogPoint(4, -1)},
        {"epoch": EPOCH, "log_end": LogPoint(-1, 11)},
        {"epoch": EPOCH, "log_end": LogPoint(EPOCH + 1, 11), "is_pre_vote": True},
        {"epoch": MAX_EPOCH + 1},
        {"epoch": EPOCH, "candidate": 1},
    ],
)
def test_impossible_vote_is_invalid(changes):
    machine = machine_in("unattached")
    response = machine.ask(vote(machine, **changes))
    assert (response.error, response.is_granted) == (ErrorCode.INVALID_REQUEST, False)
    assert (machine.state_name, machine.epoch) == ("unattached", EPOCH)


def test_vote_is_given_once_an_epoch():
    machine = machine_in("unattached")
    assert machine.ask(vote(machine, epoch=EPOCH, log_end=LOG_END, candidate=3)).is_granted
    assert machine.ask(vote(machine, epoch=EPOCH, log_end=LOG_END, candidate=3)).is_granted
    assert not machine.ask(vote(machine, epoch=EPOCH, log_end=LOG_END, candidate=2)).is_granted
    former_self = vote(machine, epoch=EPOCH, log_end=LOG_END)._replace(
        candidate=ReplicaKey(3, bytes(15) + b"y")
    )
    assert not machine.ask(former_self).is_granted


def test_vote_is_persisted_before_it_is_sent():
    machine = machine_in("unattached")
    machine.ask(vote(machine, epoch=EPOCH + 1, log_end=LONG))
    kinds = [type(action) for action in machine.actions]
    persisted = [action.election for action in machine.of(Persist)]
    assert persisted[-1] == ElectionState(EPOCH + 1, None, key(3))
    assert max(i for i, kind in enumerate(kinds) if kind is Persist) < kinds.index(Respond)


def test_follower_that_fetches_denies_pre_votes():
    machine = machine_in("follower")
    machine.core.state.has_fetched = True
    request = vote(machine, epoch=EPOCH, log_end=LogPoint(4, 11), is_pre_vote=True)
    assert not machine.ask(request).is_granted


def test_pre_votes_then_votes_elect_a_leader():
    machine = machine_in("prospective")
    assert machine.epoch == EPOCH
    first, _second = machine.sent(VoteRequest)
    assert first.request == VoteRequest(CLUSTER, key(2), key(1), EPOCH, LOG_END, True)
    # A voter that still names the former leader grants as well.
    machine.answer(
        first, VoteResponse(ErrorCode.NONE, KnownLeader(NO_LEADER, EPOCH), is_granted=True)
    )
    assert (machine.state_name, machine.epoch) == ("candidate", EPOCH + 1)
    first, _second = machine.sent(VoteRequest)
    assert not first.request.is_pre_vote
    assert first.request.epoch == EPOCH + 1
    machine.answer(
        first, VoteResponse(ErrorCode.NONE, KnownLeader(NO_LEADER, EPOCH + 1), is_granted=True)
    )
    assert (machine.state_name, machine.epoch) == ("leader", EPOCH + 1)


def test_rejected_pre_votes_change_no_epoch():
    machine = machine_in("prospective")
    for send in machine.sent(VoteRequest):
        machine.answer(
            send, VoteResponse(ErrorCode.NONE, KnownLeader(NO_LEADER, EPOCH), is_granted=False)
        )
    assert (machine.state_name, machine.epoch) == ("unattached", EPOCH)


def test_prospective_returns_to_its_leader_after_a_lost_pre_vote():
    machine = machine_in("follower")
    machine.pass_time(2_000)
    assert machine.state_name == "prospective"
    for send in machine.sent(VoteRequest):
        machine.answer(send, VoteResponse(ErrorCode.NONE, KnownLeader(2, EPOCH), is_granted=False))
    assert (machine.state_name, machine.core.state.leader_id) == ("follower", 2)


def test_voter_without_pre_votes_causes_an_election():
    machine = machine_in("prospective")
    send = machine.sent(VoteRequest)[0]
    machine.answer(send, RequestFailure(ErrorCode.UNSUPPORTED_VERSION))
    assert (machine.state_name, machine.epoch) == ("candidate", EPOCH + 1)


def test_candidate_waits_before_it_asks_again():
    machine = machine_in("candidate")
    for send in machine.sent(VoteRequest):
        leader = KnownLeader(NO_LEADER, machine.epoch)
        machine.answer(send, VoteResponse(ErrorCode.NONE, leader, is_granted=False))
    assert machine.state_name == "candidate"
    machine.pass_time(2_000)
    assert (machine.state_name, machine.epoch) == ("prospective", EPOCH + 1)


def test_only_voter_elects_itself_at_once():
    machine = Machine(voters=(1,))
    assert (machine.state_name, machine.epoch) == ("leader", EPOCH + 1)
    assert machine.core.high_watermark is None
    machine.sync()
    assert machine.core.high_watermark == machine.core.log.end_offset


def test_observer_never_begins_an_election():
    machine = machine_in("observer")
    machine.pass_time(100_000)
    assert (machine.state_name, machine.epoch) == ("observer", EPOCH)


@pytest.mark.parametrize("state", STATES)
def test_other_cluster_is_refused(state):
    machine = machine_in(state)
    request = vote(machine, epoch=machine.epoch + 1)._replace(cluster_id="another")
    assert machine.ask(request) == RequestFailure(ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert machine.state_name == state
