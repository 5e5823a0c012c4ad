"""Replication in deterministic simulation: kills, partitions of the network, lost requests.

pytest tests/simulation/test_replicas.py --seed 7 --budget-scale 0     runs schedule 7 alone
"""

from __future__ import annotations

from unittest import mock

import pytest

from tests.simulation.replica_world import ReplicaWorld
from tests.simulation.schedules import LEAVES_COROUTINES
from tests.support.budget import Budget
from wirebroker.api import partition_reads
from wirebroker.cluster.leader_role import LeaderRole
from wirebroker.cluster.partition import Partition

SECONDS = 6

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
def test_what_is_acknowledged_is_in_all_replicas_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    acknowledged = deaths = number = 0
    for number in budget.rounds():
        world = ReplicaWorld(budget.seed + number)
        world.run()
        acknowledged += len(world.acknowledged)
        deaths += world.deaths
    assert acknowledged
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  replicas: seed {budget.seed}, {number + 1} schedules, "
            f"{acknowledged} records acknowledged, {deaths} deaths"
        )


def _first_failure() -> str:
    for seed in range(60):
        try:
            ReplicaWorld(seed).run()
        except AssertionError as error:
            return str(error)
    raise AssertionError("the mistake is not seen")


def test_a_high_watermark_that_waits_for_nobody_is_seen() -> None:
    def at_once(_role: LeaderRole, log_end_offset: int, **_: object) -> int:
        return log_end_offset

    with mock.patch.object(LeaderRole, "replicated_offset", at_once):
        assert _first_failure()


def test_a_leader_that_tells_nobody_where_logs_diverge_is_seen() -> None:
    with mock.patch.object(partition_reads, "_divergence", return_value=None):
        assert _first_failure()


def test_a_leader_that_acknowledges_before_the_others_have_it_is_seen() -> None:
    def at_once(partition: Partition, _acks: int) -> int:
        return partition.log.log_end_offset

    with mock.patch.object(Partition, "acknowledged_offset", at_once):
        assert _first_failure()
