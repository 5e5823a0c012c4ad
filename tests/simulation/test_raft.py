"""Quorums of raft machines in deterministic simulation.

pytest tests/simulation/test_raft.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.raft.raft_world import RaftWorld
from tests.support.harness.budget import Budget
from wirebroker.coordinator.raft.model.log_point import RaftBatch

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


def test_same_seed_gives_same_run():
    first, second = RaftWorld(11), RaftWorld(11)
    first.run()
    second.run()
    assert first.checks.log == second.checks.log
    assert first.describe() == second.describe()
