"""Quorums of raft machines in deterministic simulation.

pytest tests/simulation/test_raft.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.raft.raft_addresses import endpoints_of
from tests.simulation.raft.raft_disk import RaftDisk, RaftSnapshot, formatted_controls
from tests.simulation.raft.raft_world import RaftWorld
from tests.support.harness.budget import Budget
from wirebroker.codecs.records.control import Voter
from wirebroker.coordinator.raft.model.log_point import FORMATTED_SNAPSHOT, LogPoint, RaftBatch
from wirebroker.coordinator.raft.model.voter_set import VoterSet

SECONDS = 20


class Totals:
    """What a number of schedules did."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.majority_ms: list[int] = []
        self.all_ms: list[int] = []

    def run(self, seed: int) -> None:
        world = RaftWorld(seed)
        world.run()
        self.counts.update(world.counts)
        self.counts["acknowledged records"] += len(world.checks.acknowledged_payloads)
        self.counts["epochs with a leader"] += len(world.checks.leaders)
        self.counts["changes of voters"] += world.administrator.changes
        self.all_ms.append(world.recovery.all_ms)
        if world.recovery.majority_ms is not None:
            self.majority_ms.append(world.recovery.majority_ms)

    def __str__(self) -> str:
        return (
            f"{len(self.all_ms)} schedules; a majority alone worked again within"
            f" {max(self.majority_ms, default=0)} ms ({len(self.majority_ms)} times), all nodes"
            f" within {max(self.all_ms)} ms\n  {dict(self.counts.most_common())}"
        )


def test_acknowledged_records_survive_every_schedule(request, capsys):
    budget = Budget(request.config, seconds=SECONDS)
    totals = Totals()
    for number in budget.rounds():
        totals.run(budget.seed + number)
    assert totals.counts["acknowledged records"]
    with capsys.disabled():
        print(f"\n  raft: seed {budget.seed}, {totals}")  # noqa: T201


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_schedules(part, request, capsys):
    seed = request.config.option.seed + 1_000_000 * (part + 1)
    totals = Totals()
    failed: list[str] = []
    for number in range(2_500):
        try:
            totals.run(seed + number)
        except AssertionError as error:
            failed.append(f"seed {seed + number}: {error}")
    with capsys.disabled():
        print(f"\n  raft: seed {seed}, {totals}")  # noqa: T201
    assert not failed, "\n".join(failed)


def test_leader_needs_what_was_committed_up_to_its_epoch():
    """The leader of a later epoch may be down, with a majority that has its records."""
    world = RaftWorld(11)
    world.run()
    (leader,) = (node for node in world.nodes.values() if node.leads)
    epoch, end = leader.core.state.epoch, world.checks.committed_end
    world.checks.log.append(RaftBatch(end, end + 1, epoch + 1, (), 10_000))
    world.checks.commit_epochs.append(epoch + 1)
    world.properties.check()
    world.checks.commit_epochs[-1] = epoch
    with pytest.raises(AssertionError, match="lacks RaftBatch"):
        world.properties.check()


def test_crash_may_undo_unsynced_changes_of_voters():
    one, two, three = (voters_with(count) for count in (1, 2, 3))
    disk = RaftDisk(VoterSet())
    disk.add_snapshot(RaftSnapshot(FORMATTED_SNAPSHOT, formatted_controls(one), ()))
    disk.write("append", RaftBatch(0, 1, 1, (two.to_record(),), None))
    disk.end_sync(disk.begin_sync())
    assert disk.voters_after_crash() == {two}
    disk.write("truncate", 0)
    disk.write("append", RaftBatch(0, 1, 2, (three.to_record(),), None))
    assert disk.load()[1].last_voters == three
    assert disk.voters_after_crash() == {two, one, three}
    disk.end_sync(disk.begin_sync())
    assert disk.voters_after_crash() == {three}


def test_crash_may_replace_the_log_by_a_later_snapshot():
    one, two = voters_with(1), voters_with(2)
    disk = RaftDisk(VoterSet())
    disk.write("append", RaftBatch(0, 9, 1, (two.to_record(),), None))
    disk.end_sync(disk.begin_sync())
    disk.add_snapshot(RaftSnapshot(LogPoint(2, 4), formatted_controls(one), ()))
    assert disk.voters_after_crash() == {one}


def voters_with(count: int) -> VoterSet:
    return VoterSet(
        Voter(node_id, node_id.to_bytes(16), endpoints_of(node_id), 0, 1)
        for node_id in range(1, count + 1)
    )


def test_same_seed_gives_same_run():
    first, second = RaftWorld(11), RaftWorld(11)
    first.run()
    second.run()
    assert first.checks.log == second.checks.log
    assert first.describe() == second.describe()
