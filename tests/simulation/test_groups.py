"""Groups in deterministic simulation: any number of schedules, each from its own seed.

pytest tests/simulation --seed 7                     begins with schedule 7
pytest tests/simulation --seed 7 --budget-scale 0    runs schedule 7 alone
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.property.budget import Budget
from tests.simulation.world import SimulationError, World
from wirebroker.cluster import coordinator_loading
from wirebroker.coordinator import group_offsets, group_sync

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 20
# Within so many schedules a planted mistake must be seen.
PLENTY = 400


def test_groups_keep_their_promises_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    totals: Counter[str] = Counter()
    simulated_s = 0.0
    slowest_s = 0
    number = 0
    for number in budget.rounds():
        world = World(budget.seed + number)
        world.run()
        simulated_s += world.loop.time()
        slowest_s = max(slowest_s, world.seconds_to_rest)
        totals.update(world.model.counts)
        totals["broker deaths"] += world.host.deaths
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  groups: seed {budget.seed}, {number + 1} schedules, {simulated_s:,.0f} simulated "
            f"seconds, at rest within {slowest_s} s\n  {dict(totals.most_common())}"
        )


def test_the_same_seed_gives_the_same_trace() -> None:
    hashes = {_trace_of(seed) for seed in (3, 3, 4)}
    assert len(hashes) == 2


def test_the_trace_does_not_depend_on_the_process() -> None:
    # Sets are ordered by hashes, which differ from process to process.
    program = "from tests.simulation.world import World; w = World(3); w.run(); print(w.trace)"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert found == {_trace_of(3)}


def _trace_of(seed: int) -> str:
    world = World(seed)
    world.run()
    return world.trace


# -- what the simulation must see ------------------------------------------------------------


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", "wirebroker")


def test_commits_of_a_former_generation_are_seen_if_they_are_taken() -> None:
    with mock.patch.object(group_offsets, "validate_commit", lambda *_: None):
        assert "goes back" in _first_failure()


def test_a_commit_is_missed_that_a_load_leaves_out() -> None:
    batch_walk = coordinator_loading.BatchWalk

    class Forgetful(batch_walk):  # type: ignore[misc,valid-type]
        def __iter__(self) -> Iterator[Any]:
            records = list(super().__iter__())
            yield from records[:-1]

    with mock.patch.object(coordinator_loading, "BatchWalk", Forgetful):
        assert "was committed" in _first_failure()


def test_two_owners_are_seen_if_everybody_may_assign() -> None:
    validate = group_sync._validate

    def trusting(group: Any, body: Any) -> None:
        body.generation_id = group.generation
        validate(group, body)

    with mock.patch.object(group_sync, "_validate", trusting):
        assert "own" in _first_failure()


def _first_failure() -> str:
    for seed in range(PLENTY):
        try:
            World(seed).run()
        except SimulationError as error:
            return str(error)
    raise AssertionError("the mistake is not seen")
