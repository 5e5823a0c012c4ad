"""What a replica shows of its state, elections, commits and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.coordinators.raft_kit import STATES, Machine, machine_in, voter_set
from tests.unit.wirebroker.quorum.raft.quorum_kit import QuorumInMemory
from wirebroker.base.recent_times import PERIOD_MS
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.quorum.raft.raft_meters import RaftMeters

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.quorum.raft.raft_figures import RaftFigures

_NOW_MS = 1_000_000


@pytest.mark.parametrize("state", STATES)
def test_states_have_the_names_of_kafka(state: str) -> None:
    figures = RaftMeters().figures(machine_in(state).core, _NOW_MS)
    assert figures.state.removesuffix("-voted") == {"resigned": "unattached"}.get(state, state)
    is_leader = state == "leader"
    assert (figures.observers, figures.has_uncommitted_voters) == (
        (0, False) if is_leader else (None, None)
    )
    assert (figures.vote == 1) == (state in ("leader", "candidate"))
    assert (figures.leader_id == 1) == (state in ("leader", "resigned"))
    assert figures.unknown_voters == 0


@pytest.mark.parametrize(
    ("silent_ms", "expected"), [(0, 1), (299_999, 1), (300_000, 0), (3_600_000, 0)]
)
def test_observers_that_have_stopped_are_not_counted(silent_ms: int, expected: int) -> None:
    machine = machine_in("leader")
    machine.fetch_as(9)
    figures = RaftMeters().figures(machine.core, machine.now_ms + silent_ms)
    assert figures.observers == expected


@pytest.mark.parametrize(
    ("without_address", "expected"), [((1,), 0), ((2,), 1), ((1, 2, 3), 2)], ids=str
)
def test_only_other_voters_need_a_known_address(
    without_address: tuple[int, ...], expected: int
) -> None:
    voters = VoterSet(
        voter._replace(endpoints=()) if voter.voter_id in without_address else voter
        for voter in voter_set(1, 2, 3)
    )
    core = Machine(members=voters, own=1).core
    assert RaftMeters().figures(core, _NOW_MS).unknown_voters == expected


def test_election_is_timed_from_the_last_candidacy_to_a_leader() -> None:
    meters, core = RaftMeters(), machine_in("leader").core
    prospective, candidate = machine_in("prospective").core.state, machine_in("candidate").core
    meters.note_state(prospective, _NOW_MS)
    meters.note_state(candidate.state, _NOW_MS + 50)
    meters.note_state(candidate.state, _NOW_MS + 70)
    meters.note_state(core.state, _NOW_MS + 90)
    meters.note_state(core.state, _NOW_MS + 500)
    figures = meters.figures(core, _NOW_MS + 500)
    assert (figures.election_average_ms, figures.election_highest_ms) == (40, 40)
    figures = meters.figures(core, _NOW_MS + 90 + 2 * PERIOD_MS)
    assert (figures.election_average_ms, figures.election_highest_ms) == (None, None)


def test_commits_of_a_leader_are_timed_and_forgotten_with_its_epoch() -> None:
    meters, core = RaftMeters(), machine_in("leader").core
    meters.note_append(3, 13, _NOW_MS, is_leader=True)
    meters.note_append(1, 14, _NOW_MS + 10, is_leader=True)
    meters.note_append(6, 20, _NOW_MS + 10, is_leader=True)
    meters.note_commit(14, _NOW_MS + 20)
    meters.note_new_epoch()
    meters.note_append(30, 50, _NOW_MS, is_leader=False)
    meters.note_commit(50, _NOW_MS + 9_000)
    figures = meters.figures(core, _NOW_MS + PERIOD_MS)
    assert (figures.commit_average_ms, figures.commit_highest_ms) == (15, 20)
    assert figures.appended_per_s == pytest.approx(10 * 1000 / PERIOD_MS)
    assert figures.fetched_per_s == pytest.approx(30 * 1000 / PERIOD_MS)


async def test_figures_of_a_quorum_agree(tmp_path: Path) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        leader = await quorum.leader()
        end_offset = leader.append("a")
        await quorum.until_applied(end_offset)
        figures: dict[int, RaftFigures] = {}
        for node_id, member in quorum.members.items():
            assert member.node is not None
            figures[node_id] = member.node.figures()
        assert {one.leader_id for one in figures.values()} == {leader.node_id}
        assert {one.high_watermark for one in figures.values()} == {end_offset}
        assert {one.log_end_offset for one in figures.values()} == {end_offset}
        assert {one.voters for one in figures.values()} == {3}
        own = figures.pop(leader.node_id)
        assert (own.state, own.election_highest_ms is not None) == ("leader", True)
        assert own.commit_average_ms is not None
        assert own.appended_per_s
        assert all(one.state == "follower" and one.fetched_per_s for one in figures.values())
