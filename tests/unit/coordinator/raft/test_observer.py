"""A broker's replica, which only observes: no votes, and where it looks for the leader."""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import (
    BOOTSTRAP,
    EPOCH,
    LOG_END,
    Machine,
    batch,
    endpoints,
    key,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.model.log_view import LogView
from wirebroker.coordinator.raft.model.replica_key import Destination
from wirebroker.coordinator.raft.protocol.actions import DiscardSnapshot, Send, Sync, Violation
from wirebroker.coordinator.raft.protocol.messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    KnownLeader,
    LogFetchRequest,
    LogFetchResponse,
    RequestFailure,
)

FOLLOWING = ElectionState(EPOCH, 2)
SILENCE_MS = 60_000


def from_leader(machine: Machine, **contents) -> LogFetchResponse:
    leader = KnownLeader(2, machine.epoch, endpoints(2))
    return LogFetchResponse(ErrorCode.NONE, leader, **contents)


@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)], ids=["only voter", "one of three"])
@pytest.mark.parametrize(
    "election",
    [
        ElectionState(EPOCH),
        ElectionState(EPOCH, 1),
        ElectionState(EPOCH, None, key(1)),
        FOLLOWING,
    ],
    ids=["an epoch", "own leadership", "own vote", "another leader"],
)
@pytest.mark.parametrize("is_static", [True, False], ids=["static", "dynamic"])
def test_broker_in_the_directory_of_a_voter_only_fetches(voters, election, is_static):
    machine = Machine(voters=voters, election=election, is_static=is_static, is_voter_capable=False)
    requests = [action.request for action in machine.of(Send)]
    for _ in range(10):
        machine.pass_time(SILENCE_MS)
        requests += [action.request for action in machine.of(Send)]
    assert requests
    assert {type(request) for request in requests} == {LogFetchRequest}
    assert machine.epoch == EPOCH


def test_broker_that_the_leader_counts_as_a_voter_fetches_what_is_synced():
    machine = Machine(election=FOLLOWING, is_voter_capable=False)
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, batches=(batch(10, EPOCH),)))
    assert machine.of(Sync)
    assert not machine.sent(LogFetchRequest)
    machine.sync()
    assert machine.sent(LogFetchRequest)


def test_observer_does_not_sync():
    machine = Machine(own=9, election=FOLLOWING, is_voter_capable=False)
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, batches=(batch(10, EPOCH),)))
    assert not machine.of(Sync)
    (send,) = machine.sent(LogFetchRequest)
    assert send.request.log_end == LogPoint(EPOCH, 11)


@pytest.mark.parametrize(
    ("bootstrap", "voters", "registered", "expected"),
    [
        (BOOTSTRAP, (), (), {-2, -3}),
        ((), (2, 3), (), {2, 3}),
        ((), (), (4, 5), {4, 5}),
        (BOOTSTRAP, (4,), (4, 5), {-2, -3, 4, 5}),
        (BOOTSTRAP, (2,), (4,), {-3, 2, 4}),
        ((), (3, 9), (9,), {3}),
    ],
    ids=["configured", "voters", "registered", "all", "each address once", "not itself"],
)
def test_observer_looks_for_the_leader_at_all_known_controllers(
    bootstrap, voters, registered, expected
):
    machine = Machine(
        own=9,
        voters=voters,
        election=ElectionState(),
        is_voter_capable=False,
        bootstrap=bootstrap,
    )
    machine.core.registered_controllers = [
        Destination(node_id, f"node{node_id}", 9093) for node_id in registered
    ]
    asked = set()
    for _ in range(200):
        sent = machine.sent(LogFetchRequest)
        if not sent:
            machine.pass_time(20)
            continue
        (send,) = sent
        asked.add(send.destination.node_id)
        machine.answer(send, RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE))
    assert asked == expected


@pytest.mark.parametrize(
    "contents",
    [{"diverging": LogPoint(4, 8)}, {"snapshot": LogPoint(4, 8)}],
    ids=["truncation", "snapshot"],
)
def test_leader_without_committed_records_is_reported(contents):
    machine = Machine(own=9, election=FOLLOWING, is_voter_capable=False)
    machine.core.commit(9)
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, **contents))
    (violation,) = machine.of(Violation)
    assert violation.lacks_commits
    assert machine.core.log.end == LOG_END


def test_records_of_the_newest_snapshot_are_committed_from_the_start():
    log = LogView(
        end_offset=LOG_END.offset,
        epochs=[(1, 0), (LOG_END.epoch, 5)],
        snapshots=[(LogPoint(1, 3), 10), (LogPoint(4, 8), 10)],
    )
    machine = Machine(own=9, log=log, election=FOLLOWING, is_voter_capable=False)
    assert machine.core.high_watermark == 8
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, diverging=LogPoint(4, 7)))
    assert machine.of(Violation)


def test_follower_notes_what_the_leader_has_committed_and_when_it_responded():
    machine = Machine(own=9, election=FOLLOWING, is_voter_capable=False)
    (send,) = machine.sent(LogFetchRequest)
    assert machine.core.leader_heard_ms is None
    machine.now_ms += 100
    machine.answer(send, from_leader(machine, high_watermark=20, batches=(batch(10, EPOCH),)))
    assert machine.core.state.leader_high_watermark == 20
    assert machine.core.high_watermark == 11
    assert machine.core.leader_heard_ms == machine.now_ms


@pytest.mark.parametrize(
    ("named", "position"),
    [(LogPoint(5, 40), 3), (LogPoint(5, 50), 0)],
    ids=["the same snapshot", "another snapshot"],
)
def test_download_continues_after_a_late_piece(named, position):
    machine = Machine(own=9, election=FOLLOWING, is_voter_capable=False)
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, snapshot=LogPoint(5, 40)))
    (send,) = machine.sent(FetchSnapshotRequest)
    leader = KnownLeader(2, machine.epoch, endpoints(2))
    piece = FetchSnapshotResponse(ErrorCode.NONE, leader, LogPoint(5, 40), 6, 0, data=b"abc")
    machine.answer(send, piece)
    # No response: any controller is asked.
    machine.pass_time(machine.core.settings.request_timeout_ms)
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, snapshot=named))
    (send,) = machine.sent(FetchSnapshotRequest)
    assert (send.request.snapshot, send.request.position) == (named, position)
    assert len(machine.of(DiscardSnapshot)) == (position == 0)
