"""AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, DescribeQuorum and kraft.version."""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import (
    CLUSTER,
    EPOCH,
    LISTENER,
    STATES,
    Machine,
    directory,
    endpoints,
    key,
    machine_in,
    voter_set,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import (
    KRaftVersion,
    LeaderChange,
    QuorumVoter,
    Voter,
    VoterEndpoint,
)
from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.coordinator.raft.protocol.actions import (
    Append,
    HighWatermarkAdvanced,
    Persist,
    Respond,
    VotersChanged,
)
from wirebroker.coordinator.raft.protocol.events import RequestReceived
from wirebroker.coordinator.raft.protocol.messages import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    KnownLeader,
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    LogFetchRequest,
    LogFetchResponse,
    RemoveRaftVoterRequest,
    RequestFailure,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoterChangeResponse,
)

NEW = 4


def add(node_id=NEW, **changes):
    request = AddRaftVoterRequest(CLUSTER, key(node_id), endpoints(node_id), 1_000)
    return request._replace(**changes)


def remove(node_id=3, **changes):
    return RemoveRaftVoterRequest(CLUSTER, key(node_id))._replace(**changes)


def update(machine, node_id=2, **changes):
    own = VoterEndpoint(LISTENER, "elsewhere", 9093)
    request = UpdateRaftVoterRequest(CLUSTER, machine.epoch, key(node_id), (own,), 0, 1)
    return request._replace(**changes)


def committed_leader(*, is_static=False):
    machine = machine_in("leader", is_static=is_static)
    machine.commit_everything()
    return machine


CHANGES = {"add": lambda _: add(), "remove": lambda _: remove(), "update": update}


@pytest.mark.parametrize("make", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("state", sorted(set(STATES) - {"leader"}))
def test_only_the_leader_changes_voters(state, make):
    machine = machine_in(state)
    assert machine.ask(make(machine)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("make", CHANGES.values(), ids=CHANGES)
def test_other_cluster_is_refused(make):
    machine = committed_leader()
    request = make(machine)._replace(cluster_id="another")
    assert machine.ask(request).error is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("make", CHANGES.values(), ids=CHANGES)
def test_change_waits_for_the_first_commit(make):
    machine = machine_in("leader")
    assert machine.ask(make(machine)).error is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("make", CHANGES.values(), ids=CHANGES)
def test_one_change_at_a_time(make):
    machine = committed_leader()
    assert machine.ask(remove(2)) is None
    assert machine.ask(make(machine)).error is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("make", CHANGES.values(), ids=CHANGES)
def test_uncommitted_update_blocks_changes(make):
    machine = committed_leader()
    assert machine.ask(update(machine)).error is ErrorCode.NONE
    assert machine.ask(make(machine)).error is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("request_", [add(), remove()], ids=["add", "remove"])
def test_static_voters_cannot_change(request_):
    machine = committed_leader(is_static=True)
    assert machine.ask(request_).error is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add(voter=ReplicaKey(NEW, ZERO_UUID)), ErrorCode.INVALID_REQUEST),
        (add(voter=ReplicaKey(-1, directory(4))), ErrorCode.INVALID_REQUEST),
        (add(endpoints=(VoterEndpoint("OTHER", "node4", 1),)), ErrorCode.INVALID_REQUEST),
        (add(2), ErrorCode.DUPLICATE_VOTER),
        (add(voter=ReplicaKey(2, directory(9))), ErrorCode.DUPLICATE_VOTER),
        (remove(NEW), ErrorCode.VOTER_NOT_FOUND),
        (remove(voter=ReplicaKey(3, directory(9))), ErrorCode.VOTER_NOT_FOUND),
        (remove(voter=ReplicaKey(3, ZERO_UUID)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_impossible_change(request_, error):
    machine = committed_leader()
    assert machine.ask(request_).error is error


def begin_addition(machine, **changes):
    token = object()
    machine.fetch_as(NEW)
    machine.step(RequestReceived(token, add(**changes)))
    return machine.sent(KRaftVersionsRequest)[0]


def test_added_voter_counts_at_once():
    machine = committed_leader()
    send = begin_addition(machine)
    assert (send.destination.node_id, send.destination.host) == (NEW, "node4")
    machine.answer(send, KRaftVersionsResponse(ErrorCode.NONE, (0, 1)))
    voters = voter_set(1, 2, 3, NEW)
    assert machine.of(VotersChanged) == [VotersChanged(voters)]
    end = machine.core.log.end_offset
    machine.sync()
    machine.fetch_as(2)
    # Two of four are no majority.
    assert machine.core.high_watermark == end - 1
    assert not machine.of(HighWatermarkAdvanced)
    machine.fetch_as(NEW)
    assert machine.core.high_watermark == end
    responses = [a.response for a in machine.of(Respond)]
    assert VoterChangeResponse(ErrorCode.NONE) in responses


def test_addition_may_be_acknowledged_before_it_is_committed():
    machine = committed_leader()
    send = begin_addition(machine, ack_when_committed=False)
    machine.answer(send, KRaftVersionsResponse(ErrorCode.NONE, (0, 1)))
    assert [a.response for a in machine.of(Respond)] == [VoterChangeResponse(ErrorCode.NONE)]


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE), ErrorCode.REQUEST_TIMED_OUT),
        (KRaftVersionsResponse(ErrorCode.UNSUPPORTED_VERSION), ErrorCode.REQUEST_TIMED_OUT),
        (KRaftVersionsResponse(ErrorCode.NONE, (0, 0)), ErrorCode.INVALID_REQUEST),
        (KRaftVersionsResponse(ErrorCode.NONE, None), ErrorCode.INVALID_REQUEST),
    ],
)
def test_unsuitable_voter_is_not_added(response, error):
    machine = committed_leader()
    machine.answer(begin_addition(machine), response)
    assert [a.response.error for a in machine.of(Respond)] == [error]
    assert machine.core.history.last_voters == voter_set(1, 2, 3)


def test_lagging_voter_is_not_added():
    machine = committed_leader()
    machine.step(RequestReceived("token", add()))
    (send,) = machine.sent(KRaftVersionsRequest)
    machine.fetch_as(NEW, 3)
    machine.answer(send, KRaftVersionsResponse(ErrorCode.NONE, (0, 1)))
    assert [a.response.error for a in machine.of(Respond)] == [ErrorCode.REQUEST_TIMED_OUT]


def test_removed_voter_does_not_count():
    machine = committed_leader()
    assert machine.ask(remove(3)) is None
    assert machine.core.history.last_voters == voter_set(1, 2)
    end = machine.core.log.end_offset
    machine.sync()
    machine.fetch_as(3)
    assert machine.core.high_watermark == end - 1
    machine.fetch_as(2)
    assert machine.core.high_watermark == end


def test_leader_that_removed_itself_commits_then_resigns():
    machine = committed_leader()
    assert machine.ask(remove(1)) is None
    machine.sync()
    machine.fetch_as(2)
    assert machine.state_name == "leader"
    machine.fetch_as(3)
    assert machine.state_name == "resigned"
    assert VoterChangeResponse(ErrorCode.NONE) in [a.response for a in machine.of(Respond)]


def test_unfinished_change_times_out_or_ends_with_the_leader():
    machine = committed_leader()
    machine.ask(remove(3))
    machine.pass_time(2_000)
    assert [a.response.error for a in machine.of(Respond)] == [ErrorCode.REQUEST_TIMED_OUT]
    machine = committed_leader()
    machine.ask(remove(3))
    machine.core.state.resign_is_requested = True
    machine.pass_time(0)
    errors = [a.response.error for a in machine.of(Respond)]
    assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_last_voter_cannot_be_removed():
    machine = Machine(voters=(1,))
    machine.sync()
    assert machine.ask(remove(1)).error is ErrorCode.VOTER_NOT_FOUND


def test_truncated_change_of_voters_is_undone():
    machine = committed_leader()
    machine.ask(remove(3))
    end = machine.core.log.end_offset
    machine.core.state.resign_is_requested = True
    machine.pass_time(0)
    machine.core.truncate(end - 1)
    assert machine.core.history.last_voters == voter_set(1, 2, 3)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"voter": ReplicaKey(2, ZERO_UUID)}, ErrorCode.INVALID_REQUEST),
        ({"endpoints": ()}, ErrorCode.INVALID_REQUEST),
        ({"min_supported_version": -1}, ErrorCode.INVALID_REQUEST),
        ({"min_supported_version": 1, "max_supported_version": 0}, ErrorCode.INVALID_REQUEST),
        ({"max_supported_version": 0}, ErrorCode.INVALID_REQUEST),
        ({"voter": key(9)}, ErrorCode.VOTER_NOT_FOUND),
        ({"epoch": EPOCH}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": EPOCH + 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_impossible_update(changes, error):
    machine = committed_leader()
    assert machine.ask(update(machine, **changes)).error is error


def test_voter_updates_its_listeners():
    machine = machine_in("follower")
    machine.core.history.reset(3, [KRaftVersion(1), moved_voters().to_record()])
    (fetch,) = machine.sent(LogFetchRequest)
    leader = KnownLeader(2, EPOCH, endpoints(2))
    machine.now_ms += 1_999
    machine.answer(fetch, LogFetchResponse(ErrorCode.NONE, leader))
    (fetch,) = machine.sent(LogFetchRequest)
    machine.now_ms += 1
    machine.answer(fetch, LogFetchResponse(ErrorCode.NONE, leader))
    (send,) = machine.sent(UpdateRaftVoterRequest)
    assert send.request == UpdateRaftVoterRequest(CLUSTER, EPOCH, key(1), endpoints(1), 0, 1)
    machine.answer(send, UpdateRaftVoterResponse(ErrorCode.NONE, leader))
    assert machine.sent(LogFetchRequest)


def moved_voters():
    """Return voters of which node 1 has another address than now."""
    moved = Voter(1, directory(1), endpoints(7), 0, 1)
    return VoterSet([*voter_set(2, 3), moved])


def test_new_leader_records_its_own_listeners():
    machine = machine_in("unattached")
    machine.core.history.reset(3, [KRaftVersion(1), moved_voters().to_record()])
    machine.become_leader()
    (append,) = machine.of(Append)
    change, version, voters = append.batches[0].controls
    assert isinstance(change, LeaderChange)
    assert (version, voters) == (KRaftVersion(1), voter_set(1, 2, 3).to_record())


def test_first_leader_records_the_voters_of_the_formatted_snapshot():
    machine = Machine(election=ElectionState(EPOCH))
    machine.core.history.reset(-1, [KRaftVersion(1), voter_set(1, 2, 3).to_record()])
    machine.become_leader()
    (append,) = machine.of(Append)
    assert append.batches[0].controls[1:] == (KRaftVersion(1), voter_set(1, 2, 3).to_record())


def test_static_leader_writes_ids_only():
    machine = machine_in("leader", is_static=True)
    (append,) = machine.of(Append)
    ids = tuple(QuorumVoter(node_id) for node_id in (1, 2, 3))
    assert append.batches[0].controls == (LeaderChange(1, ids, (QuorumVoter(1), QuorumVoter(2))),)
    assert machine.of(Persist)[-1].data_version == 0
    assert machine.core.persisted.voters == (1, 2, 3)


def test_kraft_version_is_raised_when_all_voters_have_described_themselves():
    machine = committed_leader(is_static=True)
    with pytest.raises(KafkaError) as error:
        machine.replica.upgrade(machine.epoch, 1, machine.now_ms)
    assert error.value.code is ErrorCode.INVALID_UPDATE_VERSION
    for node_id in (2, 3):
        request = update(machine, node_id, endpoints=endpoints(node_id))
        assert machine.ask(request).error is ErrorCode.NONE
    step = machine.replica.upgrade(machine.epoch, 1, machine.now_ms)
    (append,) = [action for action in step.actions if isinstance(action, Append)]
    assert append.batches[0].controls == (KRaftVersion(1), voter_set(1, 2, 3).to_record())
    assert machine.core.history.kraft_version == 1
    assert set(machine.core.state.voters) == {1, 2, 3}
    assert not machine.replica.upgrade(machine.epoch, 1, machine.now_ms).actions
    with pytest.raises(KafkaError):
        machine.replica.upgrade(machine.epoch, 0, machine.now_ms)


def joining(voters):
    machine = Machine(
        own=9,
        members=voters,
        election=ElectionState(EPOCH, 2),
        settings=QuorumSettings(is_auto_join=True),
    )
    assert machine.state_name == "observer"
    (fetch,) = machine.sent(LogFetchRequest)
    machine.now_ms += 2_000
    machine.answer(fetch, LogFetchResponse(ErrorCode.NONE, KnownLeader(2, EPOCH, endpoints(2))))
    return machine


def test_controller_joins_by_itself():
    machine = joining(voter_set(1, 2, 3))
    (send,) = machine.sent(AddRaftVoterRequest)
    assert (send.request.voter, send.request.ack_when_committed) == (key(9), False)
    machine.answer(send, VoterChangeResponse(ErrorCode.NONE))
    assert machine.sent(LogFetchRequest)
    assert not machine.sent(AddRaftVoterRequest)


def test_controller_with_a_new_disk_removes_its_former_self():
    former = Voter(9, directory(8), endpoints(9), 0, 1)
    machine = joining(VoterSet([*voter_set(1, 2, 3), former]))
    (send,) = machine.sent(RemoveRaftVoterRequest)
    assert send.request.voter == ReplicaKey(9, directory(8))
    machine.answer(send, VoterChangeResponse(ErrorCode.VOTER_NOT_FOUND))
    assert machine.sent(LogFetchRequest)


def test_describe_quorum():
    machine = committed_leader()
    machine.fetch_as(9, 7)
    response = machine.ask(DescribeQuorumRequest())
    end = machine.core.log.end_offset
    assert (response.error, response.leader_id, response.epoch) == (0, 1, EPOCH + 1)
    assert response.high_watermark == end
    assert [(r.key, r.log_end_offset) for r in response.voters] == [
        (key(node_id), end) for node_id in (1, 2, 3)
    ]
    (observer,) = response.observers
    assert observer == (key(9), 7, machine.now_ms, -1)
    assert response.endpoints[0] == (1, endpoints(1))
    machine.pass_time(300_000)
    machine = machine_in("follower")
    response = machine.ask(DescribeQuorumRequest())
    assert response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_observers_of_invented_directories_are_bounded():
    machine = committed_leader()
    for number in range(1_200):
        replica = ReplicaKey(9, number.to_bytes(16))
        machine.ask(
            LogFetchRequest(CLUSTER, replica, machine.epoch, machine.core.log.end, 1 << 40, 1, 0)
        )
    assert len(machine.core.state.observers) == 1_000
