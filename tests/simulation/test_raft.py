"""Quorums of raft machines in deterministic simulation, and faults that it must find.

pytest tests/simulation/test_raft.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest

from tests.simulation.raft.raft_world import RaftWorld
from tests.support.harness.budget import Budget
from wirebroker.coordinator.raft.model.log_view import Agreement, Comparison, LogView
from wirebroker.coordinator.raft.protocol.actions import Persist
from wirebroker.coordinator.raft.protocol.messages import VoteRequest
from wirebroker.coordinator.raft.states import transitions
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

SECONDS = 30
# The number of schedules within which a planted fault must be found.
PLENTY = 400


def test_acknowledged_records_survive_every_schedule(request, capsys):
    budget = Budget(request.config, seconds=SECONDS)
    totals: Counter[str] = Counter()
    slowest_ms = number = 0
    for number in budget.rounds():
        world = RaftWorld(budget.seed + number)
        world.run()
        totals.update(world.counts)
        totals["acknowledged records"] += len(world.checks.acknowledged_payloads)
        totals["epochs with a leader"] += len(world.checks.leaders)
        totals["changes of voters"] += world.administrator.changes
        slowest_ms = max(slowest_ms, world.recovered_ms)
    assert totals["acknowledged records"]
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  raft: seed {budget.seed}, {number + 1} schedules,"
            f" recovered within {slowest_ms} ms\n  {dict(totals.most_common())}"
        )


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_schedules(part, request):
    seed = request.config.option.seed + 1_000_000 * (part + 1)
    for number in range(2_500):
        RaftWorld(seed + number).run()


def test_same_seed_gives_same_run():
    first, second = RaftWorld(11), RaftWorld(11)
    first.run()
    second.run()
    assert first.checks.log == second.checks.log
    assert first.describe() == second.describe()


def first_failure(first_seed: int = 0, **settings: object) -> str:
    """Return the message of the first schedule that fails, from one near it on, to save time."""
    for seed in range(first_seed, first_seed + PLENTY):
        world = RaftWorld(seed)
        for name, value in settings.items():
            setattr(world, name, value)
        try:
            world.run()
        except AssertionError as error:
            return str(error)
    raise AssertionError("the mistake is not seen")


def test_detects_vote_that_is_not_persisted():
    def forgets_votes(core):
        election = core.election_state()
        core.persisted, core.persisted_version = election, core.history.kraft_version
        if election.voted is None or election.voted == core.key:
            core.actions.append(Persist(election, core.persisted_version))

    with mock.patch.object(transitions, "persist", forgets_votes):
        assert "two leaders" in first_failure(
            130, crash_after_vote_rate=1.0, election_timeout_ms=50
        )


def test_detects_truncation_by_offset_instead_of_epoch():
    compare = LogView.compare

    def by_offset(log, other):
        if compare(log, other).agreement is Agreement.SNAPSHOT:
            return compare(log, other)
        if other.offset <= log.end_offset:
            return Comparison(Agreement.VALID, other)
        return Comparison(Agreement.DIVERGING, log.end)

    with mock.patch.object(LogView, "compare", by_offset):
        assert "log matching" in first_failure()


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
        assert "commits its own epoch" in first_failure()


def test_detects_removed_voter_that_still_counts():
    set_voters = LeaderState.set_voters

    def keeps_removed(leader, voters):
        former = dict(leader.voters)
        set_voters(leader, voters)
        leader.voters = {**former, **leader.voters}

    with mock.patch.object(LeaderState, "set_voters", keeps_removed):
        assert "not at a majority" in first_failure()


def test_detects_pre_vote_that_raises_the_epoch():
    send = ReplicaCore.send

    def raises_epoch(core, destination, request, now_ms):
        if isinstance(request, VoteRequest) and request.is_pre_vote:
            request = request._replace(epoch=request.epoch + 1)
        return send(core, destination, request, now_ms)

    with mock.patch.object(ReplicaCore, "send", raises_epoch):
        assert "began epoch" in first_failure()
