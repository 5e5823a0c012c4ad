"""Faults planted into the raft machine, which the simulation of quorums must find."""

from __future__ import annotations

from unittest import mock

from tests.simulation.raft.raft_world import RaftWorld
from wirebroker.coordinator.raft import event_handlers
from wirebroker.coordinator.raft.handlers import snapshot_download
from wirebroker.coordinator.raft.model.log_view import Agreement, Comparison, LogView
from wirebroker.coordinator.raft.model.voter_history import VoterHistory
from wirebroker.coordinator.raft.protocol.actions import InstallSnapshot, Persist
from wirebroker.coordinator.raft.protocol.messages import VoteRequest
from wirebroker.coordinator.raft.states import transitions
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

# The number of schedules within which a planted fault must be found.
PLENTY = 400


def find(text: str, *, first_seed: int = 0, is_crowded: bool = False) -> None:
    """Run schedules, from one near the first failure on, until one fails with a text.

    Elections are crowded if voters crash after each vote and elect often.
    """
    for seed in range(first_seed, first_seed + PLENTY):
        world = RaftWorld(seed)
        if is_crowded:
            world.faults.crash_after_vote_rate = 1.0
            world.faults.shortly_down_ms = 2
            world.faults.longest_calm_ms = 100
            world.election_timeout_ms = 50
        try:
            world.run()
        except AssertionError as error:
            if text in str(error):
                return
    raise AssertionError("the planted fault is not found")


def test_detects_vote_that_is_not_persisted():
    def forgets_votes(core):
        election = core.election_state()
        core.persisted, core.persisted_version = election, core.history.kraft_version
        if election.voted is None or election.voted == core.key:
            core.actions.append(Persist(election, core.persisted_version))

    with mock.patch.object(transitions, "persist", forgets_votes):
        find("voted twice", is_crowded=True)


def test_detects_truncation_by_offset_instead_of_epoch():
    compare = LogView.compare

    def by_offset(log, other):
        if compare(log, other).agreement is Agreement.SNAPSHOT:
            return compare(log, other)
        if other.offset <= log.end_offset:
            return Comparison(Agreement.VALID, other)
        return Comparison(Agreement.DIVERGING, log.end)

    with mock.patch.object(LogView, "compare", by_offset):
        find("log matching")


def test_detects_commit_that_counts_an_older_epoch():
    """The machine's own assertion finds it; without that, 400 schedules lost no record."""

    def at_once(leader):
        ends = sorted((leader._end_of(voter) for voter in leader.voters.values()), reverse=True)
        committed = ends[len(ends) // 2]
        if committed <= (leader.high_watermark or 0):
            return False
        leader.high_watermark = committed
        return True

    with mock.patch.object(LeaderState, "advance", at_once):
        find("commits its own epoch")


def test_detects_removed_voter_that_still_counts():
    set_voters = LeaderState.set_voters

    def keeps_removed(leader, voters):
        former = dict(leader.voters)
        set_voters(leader, voters)
        leader.voters = {**former, **leader.voters}

    with mock.patch.object(LeaderState, "set_voters", keeps_removed):
        find("not at a majority")


def test_detects_pre_vote_that_raises_the_epoch():
    send = ReplicaCore.send

    def raises_epoch(core, destination, request, now_ms):
        if isinstance(request, VoteRequest) and request.is_pre_vote:
            request = request._replace(epoch=request.epoch + 1)
        return send(core, destination, request, now_ms)

    with mock.patch.object(ReplicaCore, "send", raises_epoch):
        find("began epoch")


def test_detects_snapshot_that_is_applied_halfway():
    write = snapshot_download._write

    def installs_first_piece(core, follower, response):
        is_written = write(core, follower, response)
        if is_written and follower.download is not None:
            core.installing = follower.download.point
            follower.download = None
            core.actions.append(InstallSnapshot(core.installing))
        return is_written

    with mock.patch.object(snapshot_download, "_write", installs_first_piece):
        find("snapshot")


def test_detects_snapshot_whose_voters_are_not_read():
    def keeps_former_voters(core, event):
        former = core.history
        core.history = VoterHistory(former.static_voters)
        snapshot_download.snapshot_is_installed(core, event)
        core.history = former

    with mock.patch.object(event_handlers, "snapshot_is_installed", keeps_former_voters):
        find("its log says")
