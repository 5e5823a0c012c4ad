"""Logs that lose their ends while nodes are restarted, in deterministic simulation.

pytest tests/simulation/test_lost_tails.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from tests.simulation.cluster.lost_tail_world import LostTailWorld, OldLostTailWorld
from tests.simulation.worlds.schedules import LEAVES_COROUTINES, PLENTY
from tests.support.harness.budget import Budget
from wirebroker.coordinator.controller.brokers import broker_registration
from wirebroker.coordinator.controller.image.cluster_image import BrokerImage
from wirebroker.coordinator.controller.partitions.leader_election import leave
from wirebroker.replica.leader_role import LeaderRole

SECONDS = 6

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
def test_acknowledged_records_survive_lost_tails_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    acknowledged = deaths = tails = creations = number = 0
    for number in budget.rounds():
        world = LostTailWorld(budget.seed + number)
        world.run()
        acknowledged += len(world.acknowledged)
        deaths += world.deaths
        tails += world.lost_tails
        creations += world.creations
    assert acknowledged
    assert creations
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  lost tails: seed {budget.seed}, {number + 1} schedules, "
            f"{acknowledged} records acknowledged, {deaths} deaths, {tails} of the last in sync"
        )


# -- planted faults --------------------------------------------------------------------------


def _first_failure(kind: type[LostTailWorld] = LostTailWorld) -> str:
    for seed in range(PLENTY):
        try:
            kind(seed).run()
        except AssertionError as error:
            return str(error)
    raise AssertionError("the mistake is not seen")


def test_detects_loss_in_a_cluster_without_eligible_leaders() -> None:
    failure = _first_failure(OldLostTailWorld)
    assert any(words in failure for words in ("is lost", "has changed", "is gone again")), failure


def test_detects_controller_that_places_no_replicas_on_stopped_brokers() -> None:
    def takes_replicas(broker: BrokerImage) -> bool:
        return not broker.in_controlled_shutdown

    with mock.patch.object(BrokerImage, "takes_replicas", property(takes_replicas)):
        assert "cannot be created" in _first_failure()


def test_detects_controller_that_treats_every_stop_as_clean() -> None:
    def leave_cleanly(*args: Any, is_unclean: bool = False, **options: Any) -> Any:
        del is_unclean
        return leave(*args, **options)

    with mock.patch.object(broker_registration, "leave", leave_cleanly):
        assert _first_failure()


def test_detects_leader_that_commits_with_too_few_replicas() -> None:
    def of_any_isr(_role: LeaderRole, _min_insync_replicas: int) -> int:
        return 1

    with mock.patch.object(LeaderRole, "least_in_sync", of_any_isr):
        assert _first_failure()
