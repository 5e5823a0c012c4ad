"""Power losses under consumers with Kafka's semantics (KIP-320), in deterministic simulation.

pytest tests/simulation/test_power_losses.py --seed 7 --budget-scale 0     runs only schedule 7
pytest tests/simulation/test_power_losses.py -k every_schedule --budget-scale 250
                                             a long run: the scale multiplies the duration
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from tests.simulation.worlds.power_loss_world import PowerLossWorld, SyncedPowerLossWorld
from tests.simulation.worlds.schedules import (
    LEAVES_COROUTINES,
    PLENTY,
    first_failure,
    run_schedules,
)
from tests.simulation.worlds.traces import traces_of_processes
from wirebroker.coordinator.controller.image import topics_edit
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.coordinator.controller.image.image_records import merge_partition
from wirebroker.storage.log.leader_epochs import LeaderEpochs

SECONDS = 6
KINDS = [
    pytest.param(PowerLossWorld, id="os"),
    pytest.param(SyncedPowerLossWorld, id="fsync"),
]

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("kind", KINDS)
def test_consumers_have_all_records_in_every_schedule(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    kind: type[PowerLossWorld],
) -> None:
    run_schedules(kind, request, capsys, seconds=SECONDS)


def test_readers_of_lost_records_detect_the_loss() -> None:
    expected = {"acknowledged records lost", "consumers that detected a loss"}
    for seed in range(PLENTY):
        world = PowerLossWorld(seed)
        world.run()
        if expected <= world.model.counts.keys():
            return
    raise AssertionError("no reader ever loses anything")


def test_the_trace_does_not_depend_on_the_process() -> None:
    assert len(traces_of_processes(PowerLossWorld, 5)) == 1


# -- planted faults --------------------------------------------------------------------------


def test_detects_leader_epoch_that_never_rises() -> None:
    def taking_the_epoch_back(before: Any, body: Any) -> Any:
        """Lower the epoch first, because a replica enters no epoch twice."""
        after = merge_partition(before, body)
        step = -1 if after.leader == NO_LEADER else 1
        return after._replace(leader_epoch=before.leader_epoch + step)

    with mock.patch.object(topics_edit, "merge_partition", taking_the_epoch_back):
        assert first_failure(PowerLossWorld, about="another history", first_seed=11)


def test_detects_wrong_end_offset_of_an_older_epoch() -> None:
    def end_of_the_log(epochs: LeaderEpochs, epoch: int, log_end_offset: int) -> tuple[int, int]:
        del epochs
        return epoch, log_end_offset

    with mock.patch.object(LeaderEpochs, "end_offset_for", end_of_the_log):
        assert "another history" in first_failure(PowerLossWorld)
