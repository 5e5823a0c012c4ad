"""Coordinators of a simulated cluster: committed offsets never decrease.

pytest tests/simulation/test_coordinators.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.simulation.cluster.cluster_schedules import first_failure, run_schedules
from tests.simulation.cluster.coordinator_world import CoordinatorWorld
from tests.simulation.worlds.partial_loading import loading
from tests.simulation.worlds.schedules import LEAVES_COROUTINES
from wirebroker.coordination import coordinator_partitions
from wirebroker.coordination.coordinator_loading import load
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordination.partition_log import PartitionLog
from wirebroker.engine.engine import Engine

if TYPE_CHECKING:
    from wirebroker.coordinator.machine import Result

SECONDS = 5
_CARRY_OUT = Engine._carry_out

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
def test_committed_offsets_never_go_back_in_any_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = run_schedules(CoordinatorWorld, request, capsys, seconds=SECONDS, name="coordinators")
    assert totals["OFFSET_COMMIT NONE"]
    assert totals["OFFSET_FETCH NONE"]


def test_the_same_seed_gives_the_same_answers() -> None:
    worlds = [CoordinatorWorld(seed) for seed in (3, 3, 4)]
    for world in worlds:
        world.run()
    first, second, other = (world.answers for world in worlds)
    assert first == second
    assert first != other


# -- planted faults --------------------------------------------------------------------------


def test_detects_commits_acknowledged_before_replication() -> None:
    at_once = property(lambda log: log.end_offset)
    with mock.patch.object(PartitionLog, "committed_offset", at_once):
        assert "was committed" in first_failure(CoordinatorWorld)


def test_detects_offsets_readable_before_replication() -> None:
    def carry_out(engine: Engine[Any], result: Result, *arguments: Any) -> None:
        if result.records:
            _CARRY_OUT(engine, result, *arguments)
            return
        for token, response in result.answers:
            token.resolve(response)

    with mock.patch.object(Engine, "_carry_out", carry_out):
        assert "was committed" in first_failure(CoordinatorWorld)


def test_detects_load_without_the_last_commit() -> None:
    with loading(lambda records: records[:-1]):
        assert "is held for" in first_failure(CoordinatorWorld)


def test_detects_load_that_ends_at_the_high_watermark() -> None:
    async def load_committed(log: Any, *others: Any) -> int:
        bounds = SimpleNamespace(
            log_start_offset=log.log_start_offset,
            log_end_offset=log.high_watermark,
            read=log.read,
        )
        committed: Any = bounds
        return await load(committed, *others)

    with mock.patch.object(coordinator_partitions, "load", load_committed):
        assert "is held for" in first_failure(CoordinatorWorld)


def test_detects_coordinator_that_serves_before_it_has_loaded() -> None:
    elect = CoordinatorPartitions._elect

    def at_once(partitions: Any, partition: Any, leader_epoch: int) -> None:
        elect(partitions, partition, leader_epoch)
        term = partitions._terms[partition.index]
        if term.loading is not None:
            term.loading.cancel()
            partitions._activate(term)

    with mock.patch.object(CoordinatorPartitions, "_elect", at_once):
        assert "is held for" in first_failure(CoordinatorWorld)


def test_detects_coordinator_that_serves_after_it_has_resigned() -> None:
    with mock.patch.object(CoordinatorPartitions, "_resign"):
        assert "is led" in first_failure(CoordinatorWorld)
